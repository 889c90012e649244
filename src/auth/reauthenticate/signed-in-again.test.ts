import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertLinkedAccount } from '#identity/linked-accounts.ts'
import { testService } from '#test/harness.ts'
import { startOauthServer } from '#test/identity-provider/oauth-server.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import {
  authUrlOf,
  CLIENT,
  createVisitor,
  person,
  TO_LOOPBACK,
  type Visitor,
} from '#test/identity-provider/visits.ts'

const { t, idp, clock, db, idToken, accountsOf } = await startSocialService()
const AUTH = authUrlOf(t)
const SESSION = t.config.session.cookie_name
const MINUTE = 60_000

/** A user of the provider, whose browser is known there, and the number of times that the provider has asked for a sign-in. */
async function knownVisitor(name: string) {
  idp.visitor = person(name)
  const visitor = createVisitor(t)
  assert.equal(await visitor.signIn(), '/app')
  const [account] = await accountsOf(idp.visitor.sub)
  return { visitor, sub: idp.visitor.sub, userId: account?.userId ?? '' }
}
const signIns = () => idp.requests.filter((path) => path.startsWith('/interaction/')).length
/** To the callback, by a browser that keeps the cookies of the provider. */
const visitKnown = (visitor: Visitor, url: string) => visitor.followTo(url, `${AUTH}/callback`)
const changed = (url: string, parameters: Readonly<Record<string, string | undefined>>) => {
  const target = new URL(url)
  for (const [name, value] of Object.entries(parameters))
    if (value === undefined) target.searchParams.delete(name)
    else target.searchParams.set(name, value)
  return target.href
}
const acts = (userId: string) =>
  db
    .selectFrom('auditEvent')
    .select('action')
    .where('targetId', '=', userId)
    .where('action', '=', 'user.reauthenticated')
    .execute()
const proofOf = (userId: string) =>
  db.selectFrom('session').select(['authTime', 'tokenHash']).where('userId', '=', userId).execute()

test('a provider that still knows the browser asks for a sign-in again before it shows a session', async () => {
  const { visitor, userId } = await knownVisitor('Ada')
  const before = signIns()
  // A second sign-in asks nothing, so the browser is known.
  assert.equal(await visitor.arrive(await visitKnown(visitor, await visitor.begin())), '/app')
  assert.equal(signIns(), before)
  const url = await visitor.begin({}, '/reauthenticate')
  const { searchParams: asked } = new URL(url)
  assert.deepEqual([asked.get('prompt'), asked.get('max_age')], ['login', '0'])
  const token = visitor.cookie(SESSION)
  assert.equal(await visitor.arrive(await visitKnown(visitor, url)), '/app')
  assert.ok(signIns() > before)
  assert.notEqual(visitor.cookie(SESSION), token)
  assert.equal((await acts(userId)).length, 1)
})

test('neither a sign-in nor a link asks for one again', async () => {
  const { visitor } = await knownVisitor('Ada')
  for (const path of ['/sign-in/social', '/link-social']) {
    const { searchParams } = new URL(await visitor.begin({}, path))
    assert.deepEqual([searchParams.get('prompt'), searchParams.get('max_age')], [null, null])
  }
})

test('an address from which the demand was taken out proves nothing', async () => {
  const { visitor, userId } = await knownVisitor('Eve')
  const without = [
    { prompt: undefined, max_age: undefined },
    { prompt: 'consent', max_age: undefined },
    // The ID token tells an old time.
    { prompt: undefined, max_age: '86400' },
  ]
  clock.advance(MINUTE)
  const [proof, token] = [await proofOf(userId), visitor.cookie(SESSION)]
  for (const parameters of without) {
    const url = changed(await visitor.begin({}, '/reauthenticate'), parameters)
    assert.equal(
      await visitor.arrive(await visitKnown(visitor, url)),
      '/failed?error=not_signed_in_again',
      JSON.stringify(parameters),
    )
    assert.deepEqual([await proofOf(userId), visitor.cookie(SESSION)], [proof, token])
  }
  assert.deepEqual(await acts(userId), [])
  assert.deepEqual(await t.mails(), [])
})

test('an ID token shows a session for ten minutes after the sign-in that it tells', async () => {
  const { visitor, sub, userId } = await knownVisitor('Ada')
  const seconds = Math.floor(t.service.kernel.now().getTime() / 1_000)
  const show = async (claims: object) => {
    const token = await idToken({ sub, email: idp.visitor?.email, ...claims })
    const headers = { authorization: `Bearer ${visitor.cookie(SESSION)}` }
    const answer = await t.anon.post(
      '/api/auth/reauthenticate',
      { provider: 'acme', idToken: { token } },
      { headers },
    )
    return [answer.status, answer.body.code]
  }
  const refused = [403, 'NOT_SIGNED_IN_AGAIN']
  const old = seconds - 700
  for (const claims of [
    {},
    { auth_time: old },
    { auth_time: String(seconds) },
    { auth_time: seconds, iat: old },
  ])
    assert.deepEqual(await show(claims), refused, JSON.stringify(claims))
  assert.deepEqual(await acts(userId), [])
  assert.deepEqual(await show({ auth_time: seconds - 500, iat: seconds }), [200, undefined])
})

test('an OAuth 2 server is asked as far as it documents how', async () => {
  const oauth = await startOauthServer()
  const endpoints = {
    authorization_url: `${oauth.url}/authorize`,
    token_url: `${oauth.url}/token`,
    userinfo_url: `${oauth.url}/user`,
  }
  const client = { client_id: CLIENT.id, client_secret: CLIENT.secret, ...endpoints }
  const providers = {
    github: client,
    facebook: client,
    discord: client,
    forge: { ...client, type: 'oauth2' as const },
  }
  const s = await testService({ config: { outbound: TO_LOOPBACK, auth: { social: { providers } } } })
  const ASKED = {
    github: 'prompt=select_account',
    facebook: 'auth_type=reauthenticate',
    discord: 'prompt=consent',
    forge: 'prompt=login',
  }
  for (const [provider, expected] of Object.entries(ASKED)) {
    const ada = await s.signUp('Ada')
    const account = { providerId: provider, accountId: ada.id }
    await insertLinkedAccount(s.service.kernel, ada.id, account, {})
    const { body } = await ada.post('/api/auth/reauthenticate', { provider })
    assert.ok(body.url.includes(expected), body.url)
  }
})
