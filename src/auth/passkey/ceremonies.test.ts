import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type CreationOptions,
  createAuthenticator,
  type Fault,
  type RequestOptions,
} from '#test/authenticator.ts'
import { type Actor, type Answer, actor, testService } from '#test/harness.ts'
import { ceremoniesOf, expectRefused } from '#test/passkeys.ts'

const AUTH = '/api/auth'
const t = await testService({ config: { auth: { trusted_origins: ['https://app.example.com'] } } })
const { creationOptions, requestOptions, register, signIn, newUser, sessionsOf } = ceremoniesOf(t)
const origin = t.service.kernel.publicUrl()

test('the challenge is named by a cookie, which its use clears, or by its id', async () => {
  const { authenticator } = await newUser()
  const options = await requestOptions(t.anon)
  const [cookie = ''] = options.headers.getSetCookie()
  assert.match(
    cookie,
    /^service-auth\.passkey=[\w-]{43}; Max-Age=300; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  const response = authenticator.get(options.body, origin)
  const headers = { cookie: cookie.split(';', 1)[0] ?? '' }
  const path = `${AUTH}/passkey/verify-authentication`
  expectRefused(await t.anon.post(path, { response }), [400, 'CHALLENGE_NOT_FOUND'])
  const signedIn = await t.anon.post(path, { response }, { headers })
  assert.equal(signedIn.status, 200)
  const cookies = signedIn.headers.getSetCookie().join('\n')
  assert.match(cookies, /service-auth\.passkey=; Max-Age=0; Path=\//)
  expectRefused(await t.anon.post(path, { response }, { headers }), [400, 'CHALLENGE_NOT_FOUND'])
})

test('a challenge is good once, for five minutes, for its ceremony, its user and its session', async () => {
  const { user, authenticator } = await newUser()
  const eve = await t.signUp('Eve')
  const verify = async (who: Actor, challengeId: string, challenge: string) => {
    const options = { challenge, rp: { id: 'localhost' }, user: { id: 'eA' } }
    const response = createAuthenticator().create(options, origin)
    return who.post(`${AUTH}/passkey/verify-registration`, { response, challengeId })
  }
  const mine = (await creationOptions(user)).body
  const signInOptions = (await requestOptions(t.anon)).body
  const unknown: readonly [number, string] = [400, 'CHALLENGE_NOT_FOUND']
  expectRefused(await verify(eve, mine.challengeId, mine.challenge), unknown)
  expectRefused(await verify(user, signInOptions.challengeId, signInOptions.challenge), unknown)
  const otherSession = (await signIn(authenticator)).body.token
  const other = actor(t.url, { authorization: `Bearer ${otherSession}` })
  expectRefused(await verify(other, mine.challengeId, mine.challenge), unknown)
  const path = `${AUTH}/passkey/verify-authentication`
  const response = authenticator.get({ challenge: mine.challenge, rpId: 'localhost' }, origin)
  expectRefused(await t.anon.post(path, { response, challengeId: mine.challengeId }), unknown)
  assert.equal((await verify(user, mine.challengeId, mine.challenge)).status, 200)
  expectRefused(await verify(user, mine.challengeId, mine.challenge), unknown)

  const late = (await requestOptions(t.anon)).body
  const lateRegistration = (await creationOptions(user)).body
  t.advance(300_001)
  const lateResponse = authenticator.get(late, origin)
  expectRefused(await t.anon.post(path, { response: lateResponse, challengeId: late.challengeId }), unknown)
  expectRefused(await verify(user, lateRegistration.challengeId, lateRegistration.challenge), unknown)
})

test('a wrong answer uses the challenge up', async () => {
  const { user, authenticator } = await newUser()
  const { body: options } = await requestOptions(t.anon)
  const verify = (fault?: Fault) =>
    t.anon.post(`${AUTH}/passkey/verify-authentication`, {
      response: authenticator.get(options, origin, fault),
      challengeId: options.challengeId,
    })
  expectRefused(await verify({ signsWrongly: true }), [401, 'AUTHENTICATION_FAILED'])
  expectRefused(await verify(), [400, 'CHALLENGE_NOT_FOUND'])
  assert.equal(await sessionsOf(user), 1)
})

test('one of 50 parallel uses of a challenge signs in, and one of 50 registers', async () => {
  const { user, authenticator } = await newUser()
  const { body: options } = await requestOptions(t.anon)
  const outcome = (answers: readonly Answer[]) => {
    const won = answers.filter(({ status }) => status === 200)
    const lost = answers.filter(({ body }) => body.code === 'CHALLENGE_NOT_FOUND')
    assert.deepEqual([won.length, lost.length], [1, 49])
  }
  const signIns = Array.from({ length: 50 }, () =>
    t.anon.post(`${AUTH}/passkey/verify-authentication`, {
      response: authenticator.get(options, origin),
      challengeId: options.challengeId,
    }),
  )
  outcome(await Promise.all(signIns))
  assert.equal(await sessionsOf(user), 2)

  const { body: creation } = await creationOptions(user)
  const registrations = Array.from({ length: 50 }, () =>
    user.post(`${AUTH}/passkey/verify-registration`, {
      response: createAuthenticator().create(creation, origin),
      challengeId: creation.challengeId,
    }),
  )
  outcome(await Promise.all(registrations))
  assert.equal((await user.get(`${AUTH}/passkey/list-user-passkeys`)).body.length, 2)
})

/** Responses of a browser or an authenticator that do not fit. */
const FAULTS: Readonly<Record<string, Fault>> = {
  'a page of another origin': { origin: 'https://evil.example' },
  'a trusted origin, which is not one of auth.passkey.origins': { origin: 'https://app.example.com' },
  'a page without TLS': { origin: 'http://localhost' },
  'another rp id': { rpId: 'evil.example' },
  'another challenge': { challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
  'another ceremony': { type: 'payment.get' },
  'a frame of another site': { crossOrigin: true },
  'no presence of the user': { userPresent: false },
}

test('a registration is refused for each fault of the response', async () => {
  const user = await t.signUp('Ada')
  for (const [name, fault] of Object.entries(FAULTS)) {
    const answer = await register(user, createAuthenticator(), { fault })
    assert.deepEqual([answer.status, answer.body.code], [400, 'FAILED_TO_VERIFY_REGISTRATION'], name)
  }
  assert.deepEqual((await user.get(`${AUTH}/passkey/list-user-passkeys`)).body, [])
  assert.ok(!(await t.mails()).some((mail) => mail.includes('passkey') && mail.includes(user.email)))
  assert.ok(
    t.log.some((line) => line.includes('passkey_registration_refused') && line.includes('evil.example')),
  )
})

test('a sign-in is refused for each fault of the response', async () => {
  const { user, authenticator } = await newUser()
  const faults = {
    ...FAULTS,
    'a wrong signature': { signsWrongly: true },
    'another user': { userHandle: 'eA' },
  }
  for (const [name, fault] of Object.entries(faults)) {
    const answer = await signIn(authenticator, fault)
    assert.deepEqual([answer.status, answer.body.code], [401, 'AUTHENTICATION_FAILED'], name)
  }
  assert.equal(await sessionsOf(user), 1)
  assert.equal((await signIn(authenticator)).status, 200)
})

test('a counter that does not increase is refused and logged, and one of two equal ones is accepted', async () => {
  const { authenticator, passkey, user } = await newUser()
  const copy = authenticator.clone()
  for (let times = 0; times < 3; times++) assert.equal((await signIn(authenticator)).status, 200)
  expectRefused(await signIn(copy), [401, 'AUTHENTICATION_FAILED'])
  const line = t.log.findLast((line) => line.includes('passkey_counter_not_higher')) ?? ''
  assert.ok(line.includes(passkey.id) && line.includes(user.id))
  expectRefused(await signIn(authenticator, { counter: 3 }), [401, 'AUTHENTICATION_FAILED'])
  // Only a valid signature is logged as a copy.
  const { length } = t.log.filter((line) => line.includes('passkey_counter_not_higher'))
  await signIn(authenticator, { counter: 0, signsWrongly: true })
  assert.equal(t.log.filter((line) => line.includes('passkey_counter_not_higher')).length, length)

  const before = await sessionsOf(user)
  const answers = await Promise.all(Array.from({ length: 10 }, () => signIn(authenticator, { counter: 20 })))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.equal(await sessionsOf(user), before + 1)
  assert.equal((await signIn(authenticator, { counter: 0xffff_ffff })).status, 200)
  expectRefused(await signIn(authenticator, { counter: 0xffff_ffff }), [401, 'AUTHENTICATION_FAILED'])
})

test('a passkey without a counter signs in any number of times', async () => {
  const user = await t.signUp('Ada')
  const authenticator = createAuthenticator({ counts: false })
  await register(user, authenticator)
  for (let times = 0; times < 3; times++) assert.equal((await signIn(authenticator)).status, 200)
})

test('pages of other origins cannot sign a browser in', async () => {
  const { authenticator } = await newUser()
  const { body: options } = await requestOptions(t.anon)
  const body = { response: authenticator.get(options, origin), challengeId: options.challengeId }
  const path = `${AUTH}/passkey/verify-authentication`
  const evil = await t.anon.post(path, body, { headers: { origin: 'https://evil.example' } })
  expectRefused(evil, [403, 'INVALID_ORIGIN'])
  assert.equal((await t.anon.post(path, body, { headers: { origin } })).status, 200)
})

test('an attestation statement is not read', async () => {
  const user = await t.signUp('Ada')
  // A certificate chain that is not one: { alg: -7, sig: h'00', x5c: [h'00'] }.
  const statement = Buffer.from('a363616c67266373696741006378356381' + '4100', 'hex')
  assert.equal((await register(user, createAuthenticator(), { fault: { statement } })).status, 200)
})

/** Values of wrong types and forms, and CBOR arrays nested 40,000 deep. */
const HOSTILE: readonly unknown[] = [
  ...[
    '',
    '{',
    '[]',
    'AAAA',
    '\ud800',
    '\0',
    'AA==',
    'A+/A',
    Buffer.alloc(40_000, 0x81).toString('base64url'),
  ],
  ...[null, -1, true, [], {}, { length: 1 }],
]

test('hostile responses get a clear failure and no session', async () => {
  const { user, authenticator } = await newUser()
  const kinds = {
    registration: {
      options: () => creationOptions(user),
      respond: (options: CreationOptions & RequestOptions) => createAuthenticator().create(options, origin),
      members: ['clientDataJSON', 'attestationObject', 'transports'],
      caller: user,
    },
    authentication: {
      options: () => requestOptions(t.anon),
      respond: (options: CreationOptions & RequestOptions) => authenticator.get(options, origin),
      members: ['clientDataJSON', 'authenticatorData', 'signature', 'userHandle'],
      caller: t.anon,
    },
  }
  for (const [name, { options, respond, members, caller }] of Object.entries(kinds)) {
    const correct = respond((await options()).body)
    const changed = HOSTILE.flatMap((value) => [
      value,
      ...['id', 'rawId', 'type', 'response'].map((member) => ({ ...correct, [member]: value })),
      ...members.map((member) => ({ ...correct, response: { ...correct.response, [member]: value } })),
    ])
    let { challengeId } = (await options()).body
    for (const response of changed) {
      const answer = await caller.post(`${AUTH}/passkey/verify-${name}`, { response, challengeId })
      const sent = JSON.stringify(response).slice(0, 300)
      assert.ok([400, 401].includes(answer.status), `${answer.status} ${answer.text} for ${sent}`)
      // Only a response of the right form uses the challenge up.
      if (answer.body.code !== 'VALIDATION_ERROR') challengeId = (await options()).body.challengeId
    }
  }
  assert.equal(await sessionsOf(user), 1)
  assert.equal((await user.get(`${AUTH}/passkey/list-user-passkeys`)).body.length, 1)
})

test('the response may be JSON text', async () => {
  const user = await t.signUp('Ada')
  const authenticator = createAuthenticator()
  const { body: creation } = await creationOptions(user)
  const created = await user.post(`${AUTH}/passkey/verify-registration`, {
    response: JSON.stringify(authenticator.create(creation, origin)),
    challengeId: creation.challengeId,
  })
  assert.equal(created.status, 200)
  const { body: request } = await requestOptions(t.anon)
  const signedIn = await t.anon.post(`${AUTH}/passkey/verify-authentication`, {
    response: JSON.stringify(authenticator.get(request, origin)),
    challengeId: request.challengeId,
  })
  assert.equal(signedIn.status, 200)
})
