import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { actOnAddressTicket } from '#identity/act.ts'
import { issueTicket } from '#identity/tickets.ts'
import { OWN_LOCKS } from '#test/database.ts'
import { type Answer, confirm, endpointOf, linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { addUser, newUser } from '../door/add-user.ts'

const t = await testService()
const { db } = t.service.kernel
const NEW_PASSWORD = 'another horse staple'

const signIn = (email: string, password = PASSWORD) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

/**
 * A user with a session, a linked GitHub account and an open verification link. The address may belong to another person: the tests decide
 * who clicks.
 */
async function signUpWithLink(
  name: string,
): Promise<User & { link: string; token: string; sessionToken: string }> {
  const user = await t.signUp(name)
  const now = new Date()
  const linked = { id: randomUUID(), userId: user.id, providerId: 'github', accountId: randomUUID() }
  await db
    .insertInto('account')
    .values({ ...linked, createdAt: now, updatedAt: now })
    .execute()
  await t.anon.post('/api/auth/send-verification-email', { email: user.email })
  const link = linkIn((await t.mails()).at(-1) ?? '')
  const token = new URL(link, t.url).searchParams.get('token') ?? ''
  return { ...user, link, token, sessionToken: user.token }
}

/** The same user after asking for a new address; `link` is the link that was mailed to it. */
async function signUpAndChangeEmail(name: string): ReturnType<typeof signUpWithLink> {
  const user = await signUpWithLink(name)
  const email = `new-${user.email}`
  await user.post('/api/auth/change-email', { newEmail: email })
  const mail = (await t.mails()).find((mail) => mail.includes(`To: ${email}`)) ?? ''
  const token = new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''
  return { ...user, email, link: linkIn(mail), token }
}

/** The parts of the account that a first proof may keep or remove. */
async function accountState({ id, ...user }: User) {
  const accounts = await db.selectFrom('account').select('providerId').where('userId', '=', id).execute()
  const { emailVerified } = await db
    .selectFrom('user')
    .select('emailVerified')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const session = (await user.get('/api/auth/get-session')).status === 200
  return { emailVerified, accounts: accounts.map(({ providerId }) => providerId).sort(), session }
}

const EVERYTHING_KEPT = { emailVerified: true, accounts: ['credential', 'github'], session: true }
const ONLY_PASSWORD_KEPT = { emailVerified: true, accounts: ['credential'], session: false }
const UNVERIFIED = { ...EVERYTHING_KEPT, emailVerified: false }

test('a click with a session of the user keeps that session, and ends the others', async () => {
  const ada = await signUpWithLink('Ada')
  const other = await signIn(ada.email)
  assert.equal((await confirm(ada, ada.link)).status, 200)
  assert.deepEqual(await accountState(ada), EVERYTHING_KEPT)
  const headers = { authorization: `Bearer ${other.body.token}` }
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 401)
  assert.equal((await signIn(ada.email)).status, 200)
})

test('a session that ends while the page is open does not count: the page asks for the password', async () => {
  const ada = await signUpWithLink('Ada')
  const page = await ada.get(ada.link, { headers: { accept: 'text/html' } })
  assert.doesNotMatch(page.text, /type="password"/)
  await ada.post('/api/auth/sign-out')
  const pressed = await ada.post('/api/auth/verify-email', { token: ada.token })
  assert.deepEqual([pressed.status, pressed.body.code], [400, 'PASSWORD_REQUIRED'])
  assert.equal((await accountState(ada)).emailVerified, false)
})

test('in another browser the page asks for the password, and the right password keeps itself', async () => {
  const ada = await signUpWithLink('Ada')
  const page = await t.anon.get(ada.link, { headers: { accept: 'text/html' } })
  assert.match(page.text, /name="password"[\s\S]*I do not know the password[\s\S]*name="newPassword"/)
  assert.ok(page.text.includes(ada.email))

  const withoutPassword = await confirm(t.anon, ada.link)
  assert.equal(withoutPassword.status, 400)
  const wrong = await confirm(t.anon, ada.link, { password: 'wrong password' })
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /The password is wrong/)
  assert.deepEqual(await accountState(ada), UNVERIFIED)

  assert.equal((await confirm(t.anon, ada.link, { password: PASSWORD })).status, 200)
  assert.deepEqual(await accountState(ada), { ...EVERYTHING_KEPT, session: false })
  assert.equal((await signIn(ada.email)).status, 200)
})

test('with "I do not know it" the user chooses a new password, and the old password, the session and the linked account are removed', async () => {
  const ada = await signUpWithLink('Ada')
  const short = await confirm(t.anon, ada.link, { newPassword: 'short' })
  assert.equal(short.status, 400)
  assert.match(short.text, /at least 8 characters[\s\S]*<details open>/)
  assert.deepEqual(await accountState(ada), UNVERIFIED)

  assert.equal((await confirm(t.anon, ada.link, { newPassword: NEW_PASSWORD })).status, 200)
  assert.deepEqual(await accountState(ada), ONLY_PASSWORD_KEPT)
  assert.deepEqual(
    [(await signIn(ada.email)).status, (await signIn(ada.email, NEW_PASSWORD)).status],
    [401, 200],
  )
  const [notice = '', ...otherMails] = await t.mails()
  assert.deepEqual(otherMails, [])
  assert.match(notice, /Subject: Your password was changed/)
})

test('the endpoint without the page removes sessions and linked accounts, and the password must be changed before the next sign-in', async () => {
  const ada = await signUpWithLink('Ada')
  const followed = await t.anon.get(endpointOf(ada.link))
  assert.deepEqual([followed.status, followed.body.user.emailVerified], [200, true])
  assert.deepEqual(await accountState(ada), ONLY_PASSWORD_KEPT)
  const stored = await db.selectFrom('account').select('password').where('userId', '=', ada.id).execute()
  assert.match(stored[0]?.password ?? '', /^\$argon2id/, 'no password is deleted')

  const wrong = await signIn(ada.email, 'wrong password')
  assert.deepEqual([wrong.status, wrong.body.code], [401, 'INVALID_EMAIL_OR_PASSWORD'])
  assert.deepEqual(await t.mails(), [])
  const right = await signIn(ada.email)
  assert.deepEqual([right.status, right.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  assert.equal(right.headers.get('set-cookie'), null)
  const [mail = '', ...otherMails] = await t.mails()
  assert.deepEqual(otherMails, [])
  const token = linkIn(mail).split('/').at(-1)
  assert.equal(
    (await t.anon.post('/api/auth/reset-password', { token, newPassword: NEW_PASSWORD })).status,
    200,
  )
  assert.equal((await signIn(ada.email, NEW_PASSWORD)).status, 200)
})

test('the session of another user keeps nothing', async () => {
  const ada = await signUpWithLink('Ada')
  const bob = await t.signUp('Bob')
  await bob.get(endpointOf(ada.link))
  assert.deepEqual(await accountState(ada), ONLY_PASSWORD_KEPT)
  assert.equal((await bob.get('/api/auth/get-session')).status, 200)
})

test('POST /verify-email does what the page does, without a cookie', async () => {
  const verify = (token: string, filled: object = {}) =>
    t.anon.post('/api/auth/verify-email', { token, ...filled })
  const ada = await signUpWithLink('Ada')
  const asked = await verify(ada.token)
  assert.deepEqual([asked.status, asked.body.code], [400, 'PASSWORD_REQUIRED'])
  const wrong = await verify(ada.token, { password: 'wrong password' })
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_PASSWORD'])
  const kept = await verify(ada.token, { password: PASSWORD })
  assert.deepEqual([kept.status, kept.body.status, kept.body.user.emailVerified], [200, true, true])
  assert.deepEqual(await accountState(ada), { ...EVERYTHING_KEPT, session: false })
  assert.equal((await verify(ada.token, { password: PASSWORD })).body.code, 'INVALID_TOKEN')

  const bob = await signUpWithLink('Bob')
  assert.equal((await verify(bob.token, { newPassword: NEW_PASSWORD })).status, 200)
  assert.deepEqual(await accountState(bob), ONLY_PASSWORD_KEPT)
  assert.equal((await signIn(bob.email, NEW_PASSWORD)).status, 200)
})

test('an account without a password gets one at the first proof', async () => {
  const ada = await signUpWithLink('Ada')
  await db.deleteFrom('account').where('userId', '=', ada.id).execute()
  const page = await t.anon.get(ada.link, { headers: { accept: 'text/html' } })
  assert.doesNotMatch(page.text, /name="password"/)
  assert.equal((await confirm(t.anon, ada.link, { newPassword: NEW_PASSWORD })).status, 200)
  assert.equal((await signIn(ada.email, NEW_PASSWORD)).status, 200)
})

test('one of many concurrent first proofs with the same link succeeds, and then only one of the two passwords signs in', async () => {
  const ada = await signUpWithLink('Ada')
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      t.anon.post('/api/auth/verify-email', {
        token: ada.token,
        ...(index % 2 === 0 ? { password: PASSWORD } : { newPassword: NEW_PASSWORD }),
      }),
    ),
  )
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.ok(answers.every(({ status }) => [200, 400, 401].includes(status)))
  const signIns = await Promise.all([signIn(ada.email), signIn(ada.email, NEW_PASSWORD)])
  assert.deepEqual(signIns.map(({ status }) => status).sort(), [200, 401])
  await t.mails()
})

const emailOf = async ({ id }: User) =>
  (await db.selectFrom('user').select('email').where('id', '=', id).executeTakeFirstOrThrow()).email

test('the last link of a change is the first proof of the new address: a stranger is asked for the password', async () => {
  const ada = await signUpAndChangeEmail('Ada')
  const page = await t.anon.get(ada.link, { headers: { accept: 'text/html' } })
  assert.match(page.text, /name="password"[\s\S]*I do not know the password[\s\S]*name="newPassword"/)
  assert.ok(page.text.includes(ada.email))
  const withoutPassword = await t.anon.post('/api/auth/verify-email', { token: ada.token })
  assert.deepEqual([withoutPassword.status, withoutPassword.body.code], [400, 'PASSWORD_REQUIRED'])
  const wrong = await confirm(t.anon, ada.link, { password: 'wrong password' })
  assert.deepEqual([wrong.status, /The password is wrong/.test(wrong.text)], [400, true])
  assert.notEqual(await emailOf(ada), ada.email)
  assert.deepEqual(await accountState(ada), UNVERIFIED)

  assert.equal((await confirm(t.anon, ada.link, { password: PASSWORD })).status, 200)
  assert.deepEqual([await emailOf(ada), await accountState(ada)], [ada.email, EVERYTHING_KEPT])
})

test('with "I do not know it" at the new address the user chooses a new password, and all that the other person added is removed', async () => {
  const eve = await signUpAndChangeEmail('Eve')
  assert.equal((await confirm(t.anon, eve.link, { newPassword: NEW_PASSWORD })).status, 200)
  assert.deepEqual([await emailOf(eve), await accountState(eve)], [eve.email, ONLY_PASSWORD_KEPT])
  assert.deepEqual(
    [(await signIn(eve.email)).status, (await signIn(eve.email, NEW_PASSWORD)).status],
    [401, 200],
  )
  const [notice = '', ...otherMails] = await t.mails()
  assert.deepEqual(otherMails, [])
  assert.match(notice, new RegExp(`To: ${eve.email}[\\s\\S]*Subject: Your password was changed`))
})

test('the endpoint without the page at the new address removes sessions and linked accounts, and the password must be changed', async () => {
  const eve = await signUpAndChangeEmail('Eve')
  assert.equal((await t.anon.get(endpointOf(eve.link))).status, 200)
  assert.deepEqual([await emailOf(eve), await accountState(eve)], [eve.email, ONLY_PASSWORD_KEPT])
  const right = await signIn(eve.email)
  assert.deepEqual([right.status, right.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  assert.match((await t.mails()).at(-1) ?? '', new RegExp(`To: ${eve.email}`))
})

test('the same holds for an account whose old address was proven; with its own session everything stays', async () => {
  const markAsVerified = async ({ id }: User) => {
    await db
      .updateTable('user')
      .set({ emailVerified: true, emailProvenAt: new Date() })
      .where('id', '=', id)
      .execute()
    await t.service.kernel.coherence.settle()
  }
  const [ada, eve] = [await signUpAndChangeEmail('Ada'), await signUpAndChangeEmail('Eve')]
  await Promise.all([markAsVerified(ada), markAsVerified(eve)])
  await t.anon.get(endpointOf(eve.link))
  assert.deepEqual(await accountState(eve), ONLY_PASSWORD_KEPT)
  await ada.get(endpointOf(ada.link))
  assert.deepEqual([await emailOf(ada), await accountState(ada)], [ada.email, EVERYTHING_KEPT])
})

test('a change to an address that a link is giving an account at that moment is refused, and neither waits for the other', async () => {
  const ada = await signUpAndChangeEmail('Ada')
  // No feature has a purpose of an address yet, so the type of such purposes is `never`.
  const purpose = 'sign in by a link' as never
  const ticket = { userId: null, sessionId: null, address: ada.email, lifetime: 60_000, payload: {} }
  const token = await issueTicket(t.service.kernel, purpose, ticket as never)
  const link = { purposes: [purpose], token }
  let changed: Promise<Answer> | undefined
  const added = await actOnAddressTicket(
    t.service.kernel,
    link,
    () => new Error('refused'),
    async (kernel, found) => {
      assert.equal(found, undefined)
      changed = t.anon.post('/api/auth/verify-email', { token: ada.token, newPassword: NEW_PASSWORD })
      while (!(await isLockAwaited())) await sleep(5)
      return addUser(kernel, newUser(kernel, { name: 'Grace', email: ada.email }), 'magic_link')
    },
  )
  const { status, body } = (await changed) ?? {}
  assert.deepEqual([status, body.code], [401, 'INVALID_TOKEN'])
  const { rows } = await sql`select id from service."user" where email = ${ada.email}`.execute(db)
  assert.deepEqual(rows, [{ id: added.id }])
})

const isLockAwaited = async (): Promise<boolean> => {
  const waiting = sql`select from ${sql.raw(OWN_LOCKS)} where not granted`
  return (await waiting.execute(db)).rows.length > 0
}
