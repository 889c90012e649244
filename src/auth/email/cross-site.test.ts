import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BROWSER, confirm, FORM, formIn, linkIn, PASSWORD, testService } from '#test/harness.ts'

const t = await testService({
  config: {
    auth: {
      email_password: { require_email_verification: true },
      email: { sign_in_after_verification: true },
    },
  },
})
const { db } = t.service.kernel

let people = 0
/** Follows the link of a new account by the endpoint that an application calls. */
async function follow(headers: Record<string, string>) {
  const email = `user-${++people}@example.com`
  await t.anon.post('/api/auth/sign-up/email', { name: 'Eve', email, password: PASSWORD })
  const [mail = ''] = await t.mails()
  const token = new URL(linkIn(mail), t.url).searchParams.get('token')
  const answer = await t.anon.get(`/api/auth/verify-email?token=${token}`, { headers })
  const user = await db
    .selectFrom('user')
    .select(['id', 'emailVerified'])
    .where('email', '=', email)
    .executeTakeFirst()
  const sessions = await db
    .selectFrom('session')
    .select('id')
    .where('userId', '=', user?.id ?? '')
    .execute()
  return {
    status: answer.status,
    isVerified: user?.emailVerified,
    hasCookie: /session-token/.test(answer.headers.get('set-cookie') ?? ''),
    hasToken: answer.headers.has('set-auth-token'),
    sessions: sessions.length,
  }
}

test('a page of another origin cannot sign a visitor in by following the link of its own account', async () => {
  const foreign: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { referer: 'https://evil.example/page' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ]
  for (const headers of foreign) {
    const outcome = { status: 200, isVerified: true, hasCookie: false, hasToken: false, sessions: 0 }
    assert.deepEqual(await follow(headers), outcome, JSON.stringify(headers))
  }
})

test('a page of our own origin and a program without a browser are signed in', async () => {
  for (const headers of [{}, { 'sec-fetch-site': 'same-origin' }, { origin: t.url }]) {
    const outcome = { status: 200, isVerified: true, hasCookie: true, hasToken: true, sessions: 1 }
    assert.deepEqual(await follow(headers), outcome, JSON.stringify(headers))
  }
})

test('the button of our page starts no session for an account whose address is proven already', async () => {
  const email = 'eve@example.com'
  await t.anon.post('/api/auth/sign-up/email', { name: 'Eve', email, password: PASSWORD })
  const eve = await confirm(t.anon, linkIn((await t.mails()).at(-1) ?? ''), { password: PASSWORD })
  assert.match(eve.headers.get('set-cookie') ?? '', /session-token/)
  // An admin takes the verification back.
  await db.updateTable('user').set({ emailVerified: false }).where('email', '=', email).execute()
  await t.anon.post('/api/auth/send-verification-email', { email })
  const second = linkIn((await t.mails()).at(-1) ?? '')

  // An attacker's page sends a victim to our page, which asks for no password.
  const page = await t.anon.get(second, { headers: { ...BROWSER, 'sec-fetch-site': 'cross-site' } })
  const headers = { ...BROWSER, ...FORM, origin: t.url }
  const raw = formIn(page.text)
  const pressed = await t.anon.send('POST', '/api/auth/confirm/verify-email', { raw, headers })
  assert.equal(pressed.status, 200)
  assert.doesNotMatch(pressed.headers.get('set-cookie') ?? '', /session-token/)
  assert.equal(pressed.headers.get('set-auth-token'), null)
})
