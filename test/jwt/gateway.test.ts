import assert from 'node:assert/strict'
import { createHmac, createPrivateKey, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { type Claims, generateKey, type SigningKey, signJwt } from '#identity/jwt/jws.ts'
import { type JwtKeyState, listJwtKeys } from '#identity/jwt/key-store.ts'
import { privateKeyOf, retireJwtKey, rotateJwtKeys } from '#identity/jwt/keys.ts'
import { MARK, tokenMark } from '#identity/jwt/session-of-jwt.ts'
import { tokenHash } from '#identity/tokens.ts'
import { actor, type User } from '#test/harness.ts'
import { impersonated, sessionIdOf } from '#test/permissions/impersonated.ts'
import { createTenants, docsOf, fetchDocs, whoIs } from '#test/tenants.ts'

// The role `auditor` requires a second factor. The clients have row-level security.
const { t, users, acme, changeControlDatabase } = await createTenants()
const { ada, bea, cem } = users
const { kernel } = t.service
const AUTH = '/api/auth'

const tokenOf = async (user: Pick<User, 'get'>): Promise<string> => {
  const { status, body, text } = await user.get(`${AUTH}/token`)
  assert.equal(status, 200, text)
  return body.token
}
const on = (headers: Record<string, string>) => actor(t.url, { 'x-service-client': 'app', ...headers })
const as = (token: string) => on({ authorization: `Bearer ${token}` })

async function keyIn(state: JwtKeyState): Promise<SigningKey> {
  const key = (await listJwtKeys(kernel.db)).find((each) => each.state === state)
  const privateKey = key && privateKeyOf(kernel.secrets, key)
  assert.ok(key && privateKey)
  return { kid: key.id, algorithm: key.algorithm, privateKey }
}
/** Names the session's token, as the header of this token does. */
const markIn = (token: string): Claims => ({ [MARK]: decodeProtectedHeader(token)[MARK] })
const refused = async (token: string, why: string) => {
  const answer = await fetchDocs(as(token))
  assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_session'], why)
}

test('a token is accepted as its session in each header, and decides whatever the key', async () => {
  const token = await tokenOf(ada)
  const key = (await t.key(['*', 'gateway.bypass_row_level_security'], { client_name: 'wide' })).apiKey
  const carried: Record<string, string>[] = [
    { authorization: `Bearer ${token}` },
    { 'x-service-auth-session-token': token },
    { 'x-service-auth-bearer-token': `Bearer ${token}` },
  ]
  for (const headers of carried) {
    assert.deepEqual(await docsOf(on(headers)), [1, 3])
    const wide = actor(t.url, { 'x-service-client': 'wide', apikey: key, ...headers })
    assert.deepEqual(await docsOf(wide), [1, 3])
    assert.equal(
      (await wide.post('/query/sql', { query: 'select 1', driver: 'postgresql' })).body.code,
      'sql_with_session',
    )
  }
  assert.deepEqual(await whoIs(as(token)), await whoIs(as(ada.token)))
  const two = await fetchDocs(
    on({ authorization: `Bearer ${token}`, 'x-service-auth-session-token': ada.token }),
  )
  assert.deepEqual([two.status, two.body.code], [400, 'ambiguous_session'])
  const origin = new URL(t.url).origin
  const cookie = await fetchDocs(on({ cookie: `${t.config.session.cookie_name}=${token}`, origin }))
  assert.deepEqual([cookie.status, cookie.body.code], [401, 'invalid_session'])
})

test('role and organization are those of the live session, not of the token', async () => {
  const [token, of] = [await tokenOf(bea), { user_id: bea.id, organization_id: acme }]
  assert.partialDeepStrictEqual((await whoIs(as(token))).claims, { ...of, organization_role: 'member' })
  await changeControlDatabase(`update service.member set role = 'owner' where user_id = $1`, [bea.id])
  assert.partialDeepStrictEqual((await whoIs(as(token))).claims, { ...of, organization_role: 'owner' })
  await bea.post(`${AUTH}/organization/set-active`, { organizationId: null })
  assert.deepEqual((await whoIs(as(token))).claims.organization_id, null)
  // The last admin keeps the role.
  for (const { id } of [await t.signUp('Root'), bea]) await setRoleByOperator(kernel, id, 'admin')
  assert.equal((await whoIs(as(token))).claims.role, 'admin')
  await setRoleByOperator(kernel, bea.id, 'user')
  const claims = { ...decodeJwt(token), role: 'admin', org: acme, org_role: 'owner' }
  const lie = signJwt(await keyIn('signing'), claims, markIn(token))
  assert.partialDeepStrictEqual((await whoIs(as(lie))).claims, { role: 'user', organization_id: null })
})

test('forged and mistaken tokens are refused, each alone', async () => {
  const token = await tokenOf(ada)
  const claims: Claims = decodeJwt(token)
  const key = await keyIn('signing')
  await rotateJwtKeys(kernel, { atOnce: true })
  const now = Math.floor(kernel.now().getTime() / 1_000)
  const sign = (changed: object) => signJwt(key, { ...claims, ...changed }, markIn(token))
  const [head = '', body = '', mac = ''] = token.split('.')
  const text = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const header = (changed: object) => text({ alg: 'ES256', typ: 'JWT', kid: key.kid, ...changed })
  const { privateKey } = generateKey('ES256')
  const stranger = { ...key, privateKey: createPrivateKey(privateKey) }
  const { keys } = (await t.anon.get(`${AUTH}/jwks`)).body
  const hmac = (secret: string) =>
    createHmac('sha256', secret)
      .update(`${header({ alg: 'HS256' })}.${body}`)
      .digest('base64url')
  const cemSession = await sessionIdOf(cem)
  const forged: Readonly<Record<string, string>> = {
    'without signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'four parts': `${token}.${mac}`,
    'alg none': `${header({ alg: 'none' })}.${body}.`,
    'alg none with the signature': `${header({ alg: 'none' })}.${body}.${mac}`,
    'HS256 with the public key': `${header({ alg: 'HS256' })}.${body}.${hmac(JSON.stringify(keys[0]))}`,
    'HS256 with nothing': `${header({ alg: 'HS256' })}.${body}.${hmac('')}`,
    'another header under the signature': `${header({ jku: 'https://evil.example' })}.${body}.${mac}`,
    'other claims under the signature': `${head}.${text({ ...claims, sub: cem.id })}.${mac}`,
    'a key of a stranger': signJwt(stranger, claims, markIn(token)),
    'a key of a stranger, by its own name': signJwt(
      { ...stranger, kid: randomUUID() },
      claims,
      markIn(token),
    ),
    'an embedded key': await new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: randomUUID(), jwk: keys[0] })
      .sign(stranger.privateKey),
    'no kid': await new SignJWT({ ...claims }).setProtectedHeader({ alg: 'ES256' }).sign(key.privateKey),
    'the kid of another key of ours': signJwt(
      { ...key, kid: (await keyIn('signing')).kid },
      claims,
      markIn(token),
    ),
    'another type': await new SignJWT({ ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: key.kid, typ: 'at+jwt' })
      .sign(key.privateKey),
    'another issuer': sign({ iss: 'https://evil.example' }),
    'the issuer with a slash': sign({ iss: `${claims.iss}/` }),
    'another audience': sign({ aud: 'https://api.example.com' }),
    'several audiences': sign({ aud: [claims.aud, 'https://api.example.com'] }),
    'no audience': sign({ aud: undefined }),
    'no end': sign({ exp: undefined }),
    'an end that is text': sign({ exp: `${now + 60}` }),
    'another user': sign({ sub: cem.id }),
    'no user': sign({ sub: undefined }),
    'the session of another user': sign({ sid: cemSession }),
    'an unknown session': sign({ sid: randomUUID() }),
    'no session': sign({ sid: undefined }),
    'a session that is no id': sign({ sid: "x'; --" }),
    'the token of the session': sign({ sid: ada.token }),
  }
  assert.deepEqual(await docsOf(as(sign({}))), [1, 3])
  for (const [why, each] of Object.entries(forged)) await refused(each, why)
  const over = await fetchDocs(as(sign({ exp: now })))
  assert.deepEqual([over.status, over.body.code], [401, 'jwt_expired'])
  // Verified before, and still its session: the previous key is published.
  assert.deepEqual(await docsOf(as(token)), [1, 3])
})

test('a token ends with its session, its user, its time and its key', async () => {
  const ends: Readonly<Record<string, (user: User, token: string) => unknown>> = {
    'sign-out': (user) => user.post(`${AUTH}/sign-out`),
    revocation: (user) => user.post(`${AUTH}/revoke-sessions`),
    ban: ({ id }) => banByOperator(kernel, id, { reason: null, expires: null }),
    'the required factor': ({ id }) => setRoleByOperator(kernel, id, 'auditor'),
    deletion: ({ id }) => changeControlDatabase('delete from service."user" where id = $1', [id]),
    'the key': async () => retireJwtKey(kernel, (await keyIn('signing')).kid),
  }
  for (const [why, end] of Object.entries(ends)) {
    const user = await t.signUp('Eve')
    const token = await tokenOf(user)
    assert.deepEqual(await docsOf(as(token)), [3], why)
    await end(user, token)
    const { status, body } = await fetchDocs(as(token))
    const isRestricted = why === 'the required factor'
    assert.deepEqual(
      [status, body.code],
      isRestricted ? [403, 'two_factor_required'] : [401, 'invalid_session'],
      why,
    )
  }
  const token = await tokenOf(ada)
  assert.deepEqual(await docsOf(as(token)), [1, 3])
  t.advance(300_000)
  assert.equal((await fetchDocs(as(token))).body.code, 'jwt_expired')
})

test('a token that names an impersonated session is refused', async () => {
  const root = await t.signUp('Root')
  await setRoleByOperator(kernel, root.id, 'admin')
  const session = await impersonated(t, root, ada, { parentId: await sessionIdOf(root) })
  assert.equal((await whoIs(as(session.token))).claims.impersonated_by, root.id)
  const sid = await sessionIdOf(session)
  const header = { [MARK]: tokenMark({ tokenHash: tokenHash(session.token) }) }
  const claims = decodeJwt(await tokenOf(ada))
  await refused(signJwt(await keyIn('signing'), { ...claims, sid }, header), 'impersonated')
})
