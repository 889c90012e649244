import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { rotateJwtKeys } from '#identity/jwt/keys.ts'
import { getBy, isFast, watchPaths } from '#test/fast-path.ts'
import { type Actor, testClock, testService } from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { enrolTotp } from '#test/second-factor.ts'

const ORIGIN = 'https://app.example.com'
const t = await testService({
  clock: testClock({ isStopped: true }),
  config: {
    auth: { jwt: { header: true }, trusted_origins: [ORIGIN], two_factor: { required_for: ['admin'] } },
  },
})
const { kernel } = t.service
const PATH = '/api/auth/get-session'
const MINUTE = 60_000

const headerOf = async (who: Actor, method = 'GET') => {
  const { status, headers } = await who.send(method, PATH, { headers: { origin: ORIGIN } })
  assert.equal(status, 200)
  assert.match(headers.get('access-control-expose-headers') ?? '', /\bset-auth-jwt\b/)
  return headers.get('set-auth-jwt')
}

test('get-session has the token of the session in a header that pages of trusted origins may read', async () => {
  const ada = await t.signUp('Ada')
  for (const method of ['GET', 'POST']) {
    const token = await headerOf(ada, method)
    assert.equal(token, (await ada.get('/api/auth/token')).body.token)
    assert.equal(decodeJwt(token ?? '').sub, ada.id)
  }
  assert.equal(await headerOf(ada, 'HEAD'), null)
  assert.equal((await t.anon.get(PATH)).headers.get('set-auth-jwt'), null)
})

test('the header is absent for an impersonated session and one that lacks a required factor', async () => {
  const [root, user] = [await t.signUp('Root'), await t.signUp('User')]
  await setRoleByOperator(kernel, root.id, 'admin')
  assert.equal(await headerOf(root), null)
  const admin = await enrolTotp(t, root)
  assert.ok(await headerOf(admin))
  const session = await impersonated(t, admin, user, { parentId: await sessionIdOf(admin) })
  assert.equal(await headerOf(session), null)
})

test('by default, and without tokens, there is no such header', async () => {
  for (const jwt of [{}, { enabled: false, header: true }]) {
    const other = await testService({ config: { auth: { jwt } } })
    const { status, headers } = await (await other.signUp('Ada')).get(PATH)
    assert.deepEqual([status, headers.get('set-auth-jwt')], [200, null])
  }
})

test('a repeated get-session has the token that is given out at that moment', async () => {
  const paths = watchPaths(t)
  const bob = await t.signUp('Bob')
  const header = async () => (await bob.get(PATH)).headers.get('set-auth-jwt')
  /** The header of answers, of which the last ones are repeated. */
  const next = async () => {
    const token = await header()
    assert.equal(await header(), token)
    assert.ok(await isFast(t, paths, getBy(bob.token)))
    assert.equal(await header(), token)
    assert.equal((await bob.get('/api/auth/token')).body.token, token)
    return decodeJwt(token ?? '')
  }
  const first = await next()
  t.advance(5 * MINUTE)
  assert.equal((await next()).iat, (first.iat ?? 0) + 300)
  t.advance(-5 * MINUTE)
  assert.equal((await next()).iat, first.iat)
  const { id } = (await bob.post('/api/auth/organization/create', { name: 'Acme', slug: 'acme-jwt' })).body
  assert.equal((await next()).org, id)
  const before = decodeProtectedHeader((await header()) ?? '').kid
  await rotateJwtKeys(kernel, { atOnce: true })
  await next()
  assert.notEqual(decodeProtectedHeader((await header()) ?? '').kid, before)

  await setRoleByOperator(kernel, bob.id, 'admin')
  for (let round = 0; round < 3; round++) assert.equal(await header(), null)
  assert.ok(await isFast(t, paths, getBy(bob.token)))
})
