import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import { sql } from 'kysely'
import { setRoleByOperator } from '#auth/admin/operator.ts'
import { rotateJwtKeys } from '#identity/jwt/keys.ts'
import { actor, PASSWORD, testClock, testService, type User } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { codeOf, enrolTotp, pendingSignIn } from '#test/second-factor.ts'

const t = await testService({
  clock: testClock({ isStopped: true }),
  config: { auth: { two_factor: { required_for: ['admin'] } } },
})
const { kernel } = t.service
const { db } = kernel
const AUTH = '/api/auth'
const rows = heldRows(t.controlUrl)
after(() => rows.close())
const MINUTE = 60_000

const ada = await t.signUp('Ada')
const tokenOf = async (who: Pick<User, 'get'>): Promise<string> => {
  const { status, body, text } = await who.get(`${AUTH}/token`)
  assert.equal(status, 200, text)
  return body.token
}
const claimsOf = async (who: Pick<User, 'get'>) => decodeJwt(await tokenOf(who))
/** As an independent verifier sees it. */
async function verified(token: string) {
  const { body } = await t.anon.get(`${AUTH}/jwks`)
  const currentDate = kernel.now()
  const issuer = kernel.publicUrl()
  return jwtVerify(token, createLocalJWKSet(body), { issuer, audience: issuer, currentDate })
}
const bearer = (token: string) => actor(t.url, { authorization: `Bearer ${token}` })

test('a session gets a token that says who it is, and no more', async () => {
  const token = await tokenOf(ada)
  const { payload, protectedHeader } = await verified(token)
  const now = Math.floor(kernel.now().getTime() / 1_000)
  assert.deepEqual(payload, {
    iss: kernel.publicUrl(),
    aud: kernel.publicUrl(),
    sub: ada.id,
    sid: await sessionIdOf(ada),
    role: 'user',
    amr: ['pwd'],
    auth_time: payload.auth_time,
    is_anonymous: false,
    iat: now,
    exp: now + 300,
  })
  assert.deepEqual([protectedHeader.alg, protectedHeader.typ], ['ES256', 'JWT'])
})

test('the token of a session is given out again until a minute before its end', async () => {
  const first = await tokenOf(ada)
  t.advance(4 * MINUTE - 1_000)
  assert.equal(await tokenOf(ada), first)
  t.advance(1_000)
  const second = await tokenOf(ada)
  assert.notEqual(second, first)
  await verified(second)
})

test('a token from the time before the clock was set back is given out no more', async () => {
  const bob = await t.signUp('Bob')
  t.advance(3_600_000)
  const early = await tokenOf(bob)
  t.advance(-3_600_000)
  const { iat = 0 } = decodeJwt(await tokenOf(bob))
  assert.equal(iat, (decodeJwt(early).iat ?? 0) - 3_600)
})

test('a new role, organization or proof is in the next token', async () => {
  const bea = await t.signUp('Bea')
  const before = await claimsOf(bea)
  const { body } = await bea.post(`${AUTH}/organization/create`, { name: 'Acme', slug: 'acme' })
  assert.partialDeepStrictEqual(await claimsOf(bea), { org: body.id, org_role: 'owner' })
  await bea.post(`${AUTH}/organization/set-active`, { organizationId: null })
  assert.deepEqual(Object.keys(await claimsOf(bea)).toSorted(), Object.keys(before).toSorted())
  t.advance(MINUTE)
  const { token } = (await bea.post(`${AUTH}/reauthenticate`, { password: PASSWORD })).body
  const after = await claimsOf(bearer(token))
  assert.equal(after.sid, before.sid)
  assert.ok(Number(after.auth_time) > Number(before.auth_time))
})

test('amr tells what the session has shown, and the sessions of an older version say nothing', async () => {
  const cem = await enrolTotp(t, await t.signUp('Cem'))
  assert.deepEqual((await claimsOf(cem)).amr, ['pwd', 'otp', 'mfa'])
  const pending = (await pendingSignIn(t.anon, cem.email)).body.token
  t.advance(MINUTE)
  const code = codeOf(t, cem.secret)
  const { token } = (await t.anon.post(`${AUTH}/two-factor/verify-totp`, { token: pending, code })).body
  assert.deepEqual((await claimsOf(bearer(token))).amr, ['pwd', 'otp', 'mfa'])

  const dora = await t.signUp('Dora')
  await db.updateTable('session').set({ amr: null }).where('userId', '=', dora.id).execute()
  await kernel.coherence.settle()
  assert.equal((await claimsOf(dora)).amr, undefined)
})

test('a token ends with its session', async () => {
  const { id } = await t.signUp('Eva')
  const eva = await db.selectFrom('user').select('email').where('id', '=', id).executeTakeFirstOrThrow()
  const body = { email: eva.email, password: PASSWORD, rememberMe: false }
  const short = bearer((await t.anon.post(`${AUTH}/sign-in/email`, body)).body.token)
  t.advance(86_400_000 - 2 * MINUTE)
  const { exp, iat } = await claimsOf(short)
  assert.ok(Number(exp) - Number(iat) <= 120)
})

test('no token for strangers, impersonated sessions, and those that lack a required factor', async () => {
  const [root, user] = [await t.signUp('Root'), await t.signUp('User')]
  const refused = async (who: Pick<User, 'get'>) => {
    const { status, body } = await who.get(`${AUTH}/token`)
    assert.equal(body.token, undefined)
    return [status, body.code]
  }
  assert.deepEqual(await refused(t.anon), [401, 'UNAUTHORIZED'])
  await setRoleByOperator(kernel, root.id, 'admin')
  assert.deepEqual(await refused(root), [403, 'TWO_FACTOR_REQUIRED'])
  const admin = await enrolTotp(t, root)
  const session = await impersonated(t, admin, user, { parentId: await sessionIdOf(admin) })
  assert.deepEqual(await refused(session), [403, 'NOT_WHILE_IMPERSONATING'])
  assert.deepEqual((await claimsOf(admin)).amr, ['pwd', 'otp', 'mfa'])
})

test('HEAD makes no token', async () => {
  const finn = await t.signUp('Finn')
  const head = await finn.send('HEAD', `${AUTH}/token`)
  assert.deepEqual([head.status, head.text], [200, ''])
  const before = Math.floor(kernel.now().getTime() / 1_000)
  t.advance(MINUTE)
  // A token of the time of HEAD would be given out now.
  assert.equal((await claimsOf(finn)).iat, before + 60)
})

test('a token counts nowhere on the authentication surface, so that it does not renew itself', async () => {
  const token = await tokenOf(ada)
  const routes = t.service.book
    .entries()
    .filter(({ path, access }) => path.startsWith(AUTH) && access !== 'open')
  assert.ok(routes.length > 80)
  const carried: Record<string, string>[] = [
    { authorization: `Bearer ${token}` },
    { cookie: `${t.config.session.cookie_name}=${token}` },
  ]
  for (const headers of carried) {
    for (const path of ['/token', '/get-session', '/list-sessions'])
      assert.equal((await actor(t.url, headers).get(AUTH + path)).status, 401, path)
    for (const { method, path, access } of routes.filter(({ access }) => /^(signed in|admin)/.test(access))) {
      const asked = await actor(t.url, headers).send(method, path.replaceAll(/\{\w+\}/g, 'x'), {
        ...(method !== 'GET' && { body: {} }),
      })
      assert.ok([400, 401, 403].includes(asked.status), `${method} ${path} (${access}): ${asked.status}`)
      assert.ok(asked.status !== 400 || asked.body.code === 'VALIDATION_ERROR', asked.text)
    }
  }
})

test('the published keys have no private part, and may be kept for an hour; a session may not', async () => {
  for (const path of [`${AUTH}/jwks`, `${AUTH}/.well-known/jwks.json`, '/.well-known/jwks.json']) {
    const { body, headers } = await t.anon.get(path)
    assert.equal(headers.get('cache-control'), 'public, max-age=3600')
    assert.equal(body.keys.length, 2)
    for (const key of body.keys)
      assert.deepEqual(Object.keys(key).toSorted(), ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'])
    assert.ok(body.keys.some(({ kid }: { kid: string }) => kid === keyIdOf))
  }
  assert.equal((await ada.get(`${AUTH}/token`)).headers.get('cache-control'), 'no-store')
})
const keyIdOf = decodeProtectedHeader(await tokenOf(ada)).kid

test('a failure to read the keys may be kept by nobody', async () => {
  const away = await testService()
  await sql`alter table service.jwt_key rename to jwt_key_away`.execute(away.service.kernel.db)
  for (const path of [`${AUTH}/jwks`, '/.well-known/jwks.json', '/.well-known/openid-configuration']) {
    const { status, headers, text } = await away.anon.get(path)
    assert.deepEqual([status >= 500, headers.get('cache-control')], [true, 'no-store'], text)
  }
})

test('one document of RFC 8414, under both names, has the issuer byte for byte', async () => {
  const [one, other] = await Promise.all(
    ['oauth-authorization-server', 'openid-configuration'].map((name) => t.anon.get(`/.well-known/${name}`)),
  )
  assert.equal(one?.text, other?.text)
  assert.equal(one?.body.issuer, (await claimsOf(ada)).iss)
  assert.equal(one?.body.jwks_uri, `${kernel.publicUrl()}${AUTH}/jwks`)
})

test('without auth.jwt.enabled there is none of it', async () => {
  const off = await testService({ config: { auth: { jwt: { enabled: false } } } })
  for (const path of [
    `${AUTH}/token`,
    `${AUTH}/jwks`,
    '/.well-known/jwks.json',
    '/.well-known/openid-configuration',
  ])
    assert.equal((await off.anon.get(path)).status, 404, path)
})

test('a session that ends, or lacks a factor by now, gets no token when the keys had to be read meanwhile', async () => {
  const ends = [
    [(who: User) => who.post(`${AUTH}/sign-out`), 401],
    [(who: User) => setRoleByOperator(kernel, who.id, 'admin'), 403],
  ] as const
  for (const [end, status] of ends) {
    const bob = await t.signUp('Bob')
    // The process forgets those that it holds.
    await rotateJwtKeys(kernel, { atOnce: true })
    const held = await rows.hold('lock table service.jwt_key in access exclusive mode', [])
    const waiting = bob.get(`${AUTH}/token`)
    await held.waiting(1)
    await end(bob)
    await held.release()
    assert.equal((await waiting).status, status)
  }
})
