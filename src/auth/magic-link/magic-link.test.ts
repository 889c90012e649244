import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { BROWSER, confirm, linkIn, PASSWORD, testService } from '#test/harness.ts'
import { codeIn } from '#test/mailed-codes.ts'
import { proveAddress } from '#test/proven-address.ts'
import { cookiesOf, enrolTotp, insertFactor, SESSION_COOKIE } from '#test/second-factor.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })
const plain = await testService()
const AUTH = '/api/auth'
const MINUTE = 60_000

const newAddress = () => `${randomUUID().slice(0, 8)}@example.com`
async function ask(email: string, more = {}) {
  const answer = await t.anon.post(`${AUTH}/sign-in/magic-link`, { email, ...more })
  assert.deepEqual([answer.status, answer.body], [200, { status: true }], answer.text)
  return (await t.mails()).filter((mail) => mail.toLowerCase().includes(`to: ${email}\r\nsubject: sign in\r`))
}
async function linkFor(email: string, more = {}): Promise<string> {
  const [mail = ''] = await ask(email, more)
  return linkIn(mail)
}
const tokenIn = (link: string): string => new URL(link, t.url).searchParams.get('token') ?? ''
const verify = (token: string, query = '') => t.anon.get(`${AUTH}/magic-link/verify?token=${token}${query}`)
const userOf = (email: string) =>
  t.service.kernel.db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst()

test('sign-in by mail is off by default', async () => {
  for (const path of ['sign-in/magic-link', 'sign-in/email-otp', 'email-otp/send-verification-otp'])
    assert.equal((await plain.anon.post(`${AUTH}/${path}`, { email: newAddress() })).status, 404)
  assert.equal((await plain.anon.get(`${AUTH}/confirm/magic-link?token=x`)).status, 404)
})

test('the button of the page signs in, and opens an account for an address without one', async () => {
  const email = newAddress()
  const link = await linkFor(email, { name: 'Ada', callbackURL: '/app', newUserCallbackURL: '/welcome' })
  assert.match(link, /^\/api\/auth\/confirm\/magic-link\?/)
  const entered = await confirm(t.anon, link)
  assert.deepEqual([entered.status, entered.headers.get('location')], [303, '/welcome'])
  const token = cookiesOf(entered)[SESSION_COOKIE]
  const session = await t.anon.get(`${AUTH}/get-session`, { headers: { authorization: `Bearer ${token}` } })
  assert.partialDeepStrictEqual(session.body.user, { email, name: 'Ada', emailVerified: true })
  assert.ok((await userOf(email))?.emailProvenAt)
  const again = await confirm(
    t.anon,
    await linkFor(email, { callbackURL: '/app', newUserCallbackURL: '/welcome' }),
  )
  assert.deepEqual([again.status, again.headers.get('location')], [303, '/app'])
})

test('a scanner that opens every link by GET and HEAD changes nothing', async () => {
  const email = newAddress()
  const link = await linkFor(email)
  for (const method of ['HEAD', 'GET', 'HEAD', 'GET'])
    for (const headers of [BROWSER, { accept: '*/*' }]) {
      const opened = await t.anon.send(method, link, { headers })
      assert.equal(opened.status, 200)
      assert.equal(opened.headers.get('set-auth-token'), null)
    }
  assert.equal(await userOf(email), undefined)
  assert.equal((await t.anon.send('HEAD', `${AUTH}/magic-link/verify?token=${tokenIn(link)}`)).status, 200)
  assert.equal(await userOf(email), undefined)
  assert.equal((await confirm(t.anon, link)).status, 200)
})

test('an application redeems the token by a GET, once, and the answer has session and user', async () => {
  const email = newAddress()
  const token = tokenIn(await linkFor(email))
  const { status, body } = await verify(token)
  assert.deepEqual([status, body.user.email, body.session.token], [200, email, body.token])
  const again = await verify(token)
  assert.deepEqual([again.status, again.body.code], [401, 'INVALID_TOKEN'])
  const sent = await verify(token, '&callbackURL=/app&errorCallbackURL=/failed')
  assert.deepEqual([sent.status, sent.headers.get('location')], [302, '/failed?error=INVALID_TOKEN'])
})

test('of fifty who redeem one link at once one is signed in', async () => {
  const email = newAddress()
  const token = tokenIn(await linkFor(email))
  const answers = await Promise.all(Array.from({ length: 50 }, () => verify(token)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.equal(answers.filter(({ body }) => body.code === 'INVALID_TOKEN').length, 49)
  const [mail = ''] = await ask(email)
  const [code, link] = [codeIn(mail), tokenIn(linkIn(mail))]
  const tries = Array.from({ length: 50 }, (_, index) =>
    index % 2 === 0 ? verify(link) : t.anon.post(`${AUTH}/sign-in/email-otp`, { email, otp: code }),
  )
  const mixed = await Promise.all(tries)
  assert.equal(mixed.filter(({ status }) => status === 200).length, 1, 'link and code are one')
})

test('a browser that comes from another site gets the page, and no session', async () => {
  const email = newAddress()
  const token = tokenIn(await linkFor(email))
  const headers = { 'sec-fetch-site': 'cross-site' }
  const led = await t.anon.get(`${AUTH}/magic-link/verify?token=${token}`, {
    headers: { ...headers, ...BROWSER },
  })
  assert.equal(led.status, 302)
  assert.match(led.headers.get('location') ?? '', /\/confirm\/magic-link\?token=/)
  const fetched = await t.anon.get(`${AUTH}/magic-link/verify?token=${token}`, { headers })
  assert.deepEqual([fetched.status, fetched.body.code], [403, 'INVALID_ORIGIN'])
  assert.equal((await verify(token)).status, 200)
})

test('a link expires', async () => {
  const token = tokenIn(await linkFor(newAddress()))
  t.advance(10 * MINUTE + 1)
  const late = await verify(token)
  assert.deepEqual([late.status, late.body.code], [401, 'TOKEN_EXPIRED'])
})

test('the first proof by a link removes what others have added, and their password signs in no more', async () => {
  const thief = await t.signUp('Thief')
  await t.service.kernel.db
    .updateTable('user')
    .set({ name: 'Advertisement' })
    .where('id', '=', thief.id)
    .execute()
  const [mail = ''] = await ask(thief.email)
  assert.doesNotMatch(mail, /Advertisement/)
  const entered = await confirm(t.anon, linkIn(mail))
  assert.equal(entered.status, 200)
  assert.equal((await thief.get(`${AUTH}/get-session`)).status, 401)
  const signIn = await t.anon.post(`${AUTH}/sign-in/email`, { email: thief.email, password: PASSWORD })
  assert.deepEqual([signIn.status, signIn.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  assert.equal((await userOf(thief.email))?.id, thief.id)
  await t.mails()
})

test('the mailbox counts once: the app is asked for its code, and who has codes by mail for the password', async () => {
  const ada = await enrolTotp(t, await proveAddress(t, await t.signUp('Ada')))
  const pending = await verify(tokenIn(await linkFor(ada.email)))
  assert.deepEqual([pending.status, pending.body.twoFactorMethods], [200, ['totp']])
  assert.equal(pending.headers.get('set-auth-token'), null)
  const bob = await proveAddress(t, await t.signUp('Bob'))
  await insertFactor(t, bob, 'otp')
  const token = tokenIn(await linkFor(bob.email))
  const refused = await verify(token)
  assert.deepEqual([refused.status, refused.body.code], [403, 'PASSWORD_SIGN_IN_REQUIRED'])
})

test('a banned user gets no mail and the same answer, and an open link ends', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  const token = tokenIn(await linkFor(ada.email))
  const ban = { banned: true, banReason: null, banExpires: null }
  await t.service.kernel.db.updateTable('user').set(ban).where('id', '=', ada.id).execute()
  assert.deepEqual((await verify(token)).body.code, 'INVALID_TOKEN')
  assert.deepEqual(await ask(ada.email), [])
})

test('targets are judged, and names have their rule', async () => {
  const email = newAddress()
  for (const name of ['callbackURL', 'newUserCallbackURL', 'errorCallbackURL']) {
    const { status, body } = await t.anon.post(`${AUTH}/sign-in/magic-link`, {
      email,
      [name]: '//evil.example',
    })
    assert.deepEqual([status, body.code], [403, 'INVALID_CALLBACK_URL'])
  }
  const bad = await t.anon.post(`${AUTH}/sign-in/magic-link`, { email, name: 'a\nb' })
  assert.deepEqual([bad.status, bad.body.code], [400, 'VALIDATION_ERROR'])
  assert.deepEqual(await t.mails(), [])
})

test('a page for new users whose origin is trusted no more is no target of a link of before', async () => {
  const { trusted_origins } = t.config.auth
  const trust = (...origins: string[]) => Object.assign(t.config.auth, { trusted_origins: origins })
  trust('https://app.example.com')
  const target = 'https://app.example.com/welcome'
  const [kept, left] = [
    await linkFor(newAddress(), { newUserCallbackURL: target }),
    await linkFor(newAddress(), { newUserCallbackURL: target }),
  ]
  assert.equal((await confirm(t.anon, kept)).headers.get('location'), target)
  trust()
  const page = await t.anon.get(left, { headers: BROWSER })
  assert.doesNotMatch(page.headers.get('content-security-policy') ?? '', /app\.example/)
  const done = await confirm(t.anon, left)
  assert.deepEqual([done.status, done.headers.get('location')], [200, null])
  Object.assign(t.config.auth, { trusted_origins })
})

test('a proven address is a way in: the last account can be unlinked', async () => {
  const ada = await proveAddress(t, await t.signUp('Ada'))
  const unlinked = await ada.post(`${AUTH}/unlink-account`, { providerId: 'credential' })
  assert.equal(unlinked.status, 200, unlinked.text)
  const bob = await t.signUp('Bob')
  const kept = await bob.post(`${AUTH}/unlink-account`, { providerId: 'credential' })
  assert.equal(kept.body.code, 'FAILED_TO_UNLINK_LAST_ACCOUNT')
})
