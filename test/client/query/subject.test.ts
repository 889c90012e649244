import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClientOptions } from '#client/client.ts'
import { connect } from '#client/connection.ts'
import { subjectOf } from '#client/query/subject.ts'

const KEY = 'svc_0123456789abcdef.secretsecretsecretsecretsecretsecretsecretsec'
const subject = (options: Partial<ClientOptions> = {}, given?: string): string =>
  subjectOf(connect({ url: 'http://service', key: KEY, ...options }), given)
const jwt = (claims: object): string =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.signature`

test('keys are told apart by what is public of them, and texts by a digest', () => {
  assert.match(subject(), /^0123456789abcdef\//)
  const admin = 'admin-key-of-the-tests-0123456789'
  assert.ok(!subject({ key: admin }).includes(admin))
  const all = [
    subject(),
    subject({ key: admin }),
    subject({ key: `${admin}0` }),
    subject({ client: 'other' }),
  ]
  assert.equal(new Set(all).size, all.length)
})

test('sessions are told apart, and none of their tokens can be read', () => {
  const tokens = ['one-token', 'other-token']
  const subjects = tokens.map((token) => subject({ session: () => token }))
  const inHeaders = tokens.map((token) => subject({ session: () => ({ cookie: `session=${token}` }) }))
  const all = [...subjects, ...inHeaders, subject(), subject({ session: () => undefined })]
  assert.equal(new Set(all).size, 5)
  for (const text of all) assert.ok(!tokens.some((token) => text.includes(token)))
})

test('the user of a JWT is its sub, and another token of the same claims is the same user', () => {
  const of = (claims: object) => subject({ session: () => jwt(claims) })
  const ada = { sub: 'Ada Ö', org: 1 }
  assert.ok(of(ada).includes('/Ada Ö~'))
  assert.equal(
    of({ ...ada, iat: 1, exp: 2, jti: 'a' }),
    of({ jti: 'b', exp: 3, iat: 2, org: 1, sub: 'Ada Ö' }),
  )
  assert.notEqual(of(ada), of({ ...ada, org: 2 }))
  assert.notEqual(of(ada), of({ ...ada, sub: 'Bea' }))
})

test('a user who cannot be seen has to be named', () => {
  const asked = { session: async () => 'token' }
  assert.throws(() => subject(asked), { name: 'TypeError', message: /pass \{ subject:/ })
  assert.ok(subject(asked, 'ada').includes('/ada/'))
  assert.notEqual(subject(asked, 'ada'), subject(asked, 'bea'))
  const failing = { session: () => Promise.reject(new Error('signed out')) }
  assert.throws(() => subject(failing), TypeError)
  const cookies = { ...connect({ url: 'http://service' }), sendsCookies: true }
  assert.throws(() => subjectOf(cookies), TypeError)
  assert.notEqual(subjectOf(cookies, 'ada'), subjectOf(cookies, 'bea'))
})
