import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { actOnAddressTicket } from '#identity/proof.ts'
import { issueTicket } from '#identity/tickets.ts'
import { type Answer, confirm, endpointOf, linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { addUser, newUser } from '../add-user.ts'

const t = await testService()
const { db } = t.service.kernel
const NEW = 'another horse staple'

const signIn = (email: string, password = PASSWORD) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

/** A new user, perhaps with an address of another person, with a session and a linked account. */
async function signedUp(name: string): Promise<User & { link: string; token: string; sessionToken: string }> {
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

/** The same after a change to an address, perhaps of another person, whose last link is open. */
async function changing(name: string): ReturnType<typeof signedUp> {
  const user = await signedUp(name)
  const email = `new-${user.email}`
  await user.post('/api/auth/change-email', { newEmail: email })
  const mail = (await t.mails()).find((mail) => mail.includes(`To: ${email}`)) ?? ''
  const token = new URL(linkIn(mail), t.url).searchParams.get('token') ?? ''
  return { ...user, email, link: linkIn(mail), token }
}

/** The state after the proof. */
async function leftOf({ id, ...user }: User) {
  const accounts = await db.selectFrom('account').select('providerId').where('userId', '=', id).execute()
  const { emailVerified } = await db
    .selectFrom('user')
    .select('emailVerified')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const session = (await user.get('/api/auth/get-session')).status === 200
  return { emailVerified, accounts: accounts.map(({ providerId }) => providerId).sort(), session }
}

const ALL = { emailVerified: true, accounts: ['credential', 'github'], session: true }
const REST_GONE = { emailVerified: true, accounts: ['credential'], session: false }
const UNTOUCHED = { ...ALL, emailVerified: false }

test('a click with a session of the user keeps everything, other sessions too', async () => {
  const ada = await signedUp('Ada')
  const other = await signIn(ada.email)
  assert.equal((await confirm(ada, ada.link)).status, 200)
  assert.deepEqual(await leftOf(ada), ALL)
  const headers = { authorization: `Bearer ${other.body.token}` }
  assert.equal((await t.anon.get('/api/auth/get-session', { headers })).status, 200)
  assert.equal((await signIn(ada.email)).status, 200)
})

test('a session that ends while the page is open does not count: the page asks for the password', async () => {
  const ada = await signedUp('Ada')
  const page = await ada.get(ada.link, { headers: { accept: 'text/html' } })
  assert.doesNotMatch(page.text, /type="password"/)
  await ada.post('/api/auth/sign-out')
  const pressed = await ada.post('/api/auth/verify-email', { token: ada.token })
  assert.deepEqual([pressed.status, pressed.body.code], [400, 'PASSWORD_REQUIRED'])
  assert.equal((await leftOf(ada)).emailVerified, false)
})

test('in another browser the page asks for the password, and the right one keeps everything', async () => {
  const ada = await signedUp('Ada')
  const page = await t.anon.get(ada.link, { headers: { accept: 'text/html' } })
  assert.match(page.text, /name="password"[\s\S]*I do not know the password[\s\S]*name="newPassword"/)
  assert.ok(page.text.includes(ada.email))

  const empty = await confirm(t.anon, ada.link)
  assert.equal(empty.status, 400)
  const wrong = await confirm(t.anon, ada.link, { password: 'wrong password' })
  assert.equal(wrong.status, 400)
  assert.match(wrong.text, /The password is wrong/)
  assert.deepEqual(await leftOf(ada), UNTOUCHED)

  assert.equal((await confirm(t.anon, ada.link, { password: PASSWORD })).status, 200)
  assert.deepEqual(await leftOf(ada), ALL)
  assert.equal((await signIn(ada.email)).status, 200)
})

test('with "I do not know it" a new password is chosen, and the old one goes with everything else', async () => {
  const ada = await signedUp('Ada')
  const short = await confirm(t.anon, ada.link, { newPassword: 'short' })
  assert.equal(short.status, 400)
  assert.match(short.text, /at least 8 characters[\s\S]*<details open>/)
  assert.deepEqual(await leftOf(ada), UNTOUCHED)

  assert.equal((await confirm(t.anon, ada.link, { newPassword: NEW })).status, 200)
  assert.deepEqual(await leftOf(ada), REST_GONE)
  assert.deepEqual([(await signIn(ada.email)).status, (await signIn(ada.email, NEW)).status], [401, 200])
  const [notice = '', ...none] = await t.mails()
  assert.deepEqual(none, [])
  assert.match(notice, /Subject: Your password was changed/)
})

test('the endpoint without the page removes the rest, and the password has to be changed before it signs in', async () => {
  const ada = await signedUp('Ada')
  const followed = await t.anon.get(endpointOf(ada.link))
  assert.deepEqual([followed.status, followed.body.user.emailVerified], [200, true])
  assert.deepEqual(await leftOf(ada), REST_GONE)
  const stored = await db.selectFrom('account').select('password').where('userId', '=', ada.id).execute()
  assert.match(stored[0]?.password ?? '', /^\$argon2id/, 'no password is deleted')

  const wrong = await signIn(ada.email, 'wrong password')
  assert.deepEqual([wrong.status, wrong.body.code], [401, 'INVALID_EMAIL_OR_PASSWORD'])
  assert.deepEqual(await t.mails(), [])
  const right = await signIn(ada.email)
  assert.deepEqual([right.status, right.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  assert.equal(right.headers.get('set-cookie'), null)
  const [mail = '', ...none] = await t.mails()
  assert.deepEqual(none, [])
  const token = linkIn(mail).split('/').at(-1)
  assert.equal((await t.anon.post('/api/auth/reset-password', { token, newPassword: NEW })).status, 200)
  assert.equal((await signIn(ada.email, NEW)).status, 200)
})

test('the session of another user keeps nothing', async () => {
  const ada = await signedUp('Ada')
  const bob = await t.signUp('Bob')
  await bob.get(endpointOf(ada.link))
  assert.deepEqual(await leftOf(ada), REST_GONE)
  assert.equal((await bob.get('/api/auth/get-session')).status, 200)
})

test('POST /verify-email does what the page does, without a cookie', async () => {
  const verify = (token: string, filled: object = {}) =>
    t.anon.post('/api/auth/verify-email', { token, ...filled })
  const ada = await signedUp('Ada')
  const asked = await verify(ada.token)
  assert.deepEqual([asked.status, asked.body.code], [400, 'PASSWORD_REQUIRED'])
  const wrong = await verify(ada.token, { password: 'wrong password' })
  assert.deepEqual([wrong.status, wrong.body.code], [400, 'INVALID_PASSWORD'])
  const kept = await verify(ada.token, { password: PASSWORD })
  assert.deepEqual([kept.status, kept.body.status, kept.body.user.emailVerified], [200, true, true])
  assert.deepEqual(await leftOf(ada), ALL)
  assert.equal((await verify(ada.token, { password: PASSWORD })).body.code, 'INVALID_TOKEN')

  const bob = await signedUp('Bob')
  assert.equal((await verify(bob.token, { newPassword: NEW })).status, 200)
  assert.deepEqual(await leftOf(bob), REST_GONE)
  assert.equal((await signIn(bob.email, NEW)).status, 200)
})

test('an account without a password gets one at the first proof', async () => {
  const ada = await signedUp('Ada')
  await db.deleteFrom('account').where('userId', '=', ada.id).execute()
  const page = await t.anon.get(ada.link, { headers: { accept: 'text/html' } })
  assert.doesNotMatch(page.text, /name="password"/)
  assert.equal((await confirm(t.anon, ada.link, { newPassword: NEW })).status, 200)
  assert.equal((await signIn(ada.email, NEW)).status, 200)
})

test('a verification link cannot reset a password a second time', async () => {
  const ada = await signedUp('Ada')
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  const other = linkIn((await t.mails()).at(-1) ?? '')
  assert.equal((await confirm(ada, ada.link)).status, 200)
  const again = await confirm(t.anon, other)
  assert.equal(again.status, 200, 'the address is proven already')
  const ben = await signedUp('Ben')
  await t.anon.post('/api/auth/send-verification-email', { email: ben.email })
  const late = new URL(linkIn((await t.mails()).at(-1) ?? ''), t.url).searchParams.get('token')
  await confirm(ben, ben.link)
  const reset = await t.anon.post('/api/auth/verify-email', { token: late, newPassword: NEW })
  assert.deepEqual([reset.status, reset.body.code], [401, 'INVALID_TOKEN'])
  assert.equal((await signIn(ben.email)).status, 200)
})

test('of many concurrent first proofs with one link one acts, and never do both the old and a new password sign in', async () => {
  const ada = await signedUp('Ada')
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) =>
      t.anon.post('/api/auth/verify-email', {
        token: ada.token,
        ...(index % 2 === 0 ? { password: PASSWORD } : { newPassword: NEW }),
      }),
    ),
  )
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  assert.ok(answers.every(({ status }) => [200, 400, 401].includes(status)))
  const held = await Promise.all([signIn(ada.email), signIn(ada.email, NEW)])
  assert.deepEqual(held.map(({ status }) => status).sort(), [200, 401])
  await t.mails()
})

const emailOf = async ({ id }: User) =>
  (await db.selectFrom('user').select('email').where('id', '=', id).executeTakeFirstOrThrow()).email

test('the last link of a change is the first proof of the new address: a stranger is asked for the password', async () => {
  const ada = await changing('Ada')
  const page = await t.anon.get(ada.link, { headers: { accept: 'text/html' } })
  assert.match(page.text, /name="password"[\s\S]*I do not know the password[\s\S]*name="newPassword"/)
  assert.ok(page.text.includes(ada.email))
  const empty = await t.anon.post('/api/auth/verify-email', { token: ada.token })
  assert.deepEqual([empty.status, empty.body.code], [400, 'PASSWORD_REQUIRED'])
  const wrong = await confirm(t.anon, ada.link, { password: 'wrong password' })
  assert.deepEqual([wrong.status, /The password is wrong/.test(wrong.text)], [400, true])
  assert.notEqual(await emailOf(ada), ada.email)
  assert.deepEqual(await leftOf(ada), UNTOUCHED)

  assert.equal((await confirm(t.anon, ada.link, { password: PASSWORD })).status, 200)
  assert.deepEqual([await emailOf(ada), await leftOf(ada)], [ada.email, ALL])
})

test('with "I do not know it" at the new address a new password is chosen, and nothing of the other person is left', async () => {
  const eve = await changing('Eve')
  assert.equal((await confirm(t.anon, eve.link, { newPassword: NEW })).status, 200)
  assert.deepEqual([await emailOf(eve), await leftOf(eve)], [eve.email, REST_GONE])
  assert.deepEqual([(await signIn(eve.email)).status, (await signIn(eve.email, NEW)).status], [401, 200])
  const [notice = '', ...none] = await t.mails()
  assert.deepEqual(none, [])
  assert.match(notice, new RegExp(`To: ${eve.email}[\\s\\S]*Subject: Your password was changed`))
})

test('the endpoint without the page at the new address removes the rest, and the password has to be changed', async () => {
  const eve = await changing('Eve')
  assert.equal((await t.anon.get(endpointOf(eve.link))).status, 200)
  assert.deepEqual([await emailOf(eve), await leftOf(eve)], [eve.email, REST_GONE])
  const right = await signIn(eve.email)
  assert.deepEqual([right.status, right.body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  assert.match((await t.mails()).at(-1) ?? '', new RegExp(`To: ${eve.email}`))
})

test('the same holds for an account whose old address was proven; with its own session everything stays', async () => {
  const prove = async ({ id }: User) => {
    await db.updateTable('user').set({ emailVerified: true }).where('id', '=', id).execute()
    await t.service.kernel.coherence.settle()
  }
  const [ada, eve] = [await changing('Ada'), await changing('Eve')]
  await Promise.all([prove(ada), prove(eve)])
  await t.anon.get(endpointOf(eve.link))
  assert.deepEqual(await leftOf(eve), REST_GONE)
  await ada.get(endpointOf(ada.link))
  assert.deepEqual([await emailOf(ada), await leftOf(ada)], [ada.email, ALL])
})

test('a change to an address that a link is giving an account at that moment is refused, and neither waits for the other', async () => {
  const ada = await changing('Ada')
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
      changed = t.anon.post('/api/auth/verify-email', { token: ada.token, newPassword: NEW })
      while (!(await isLockAwaited())) await sleep(5)
      return addUser(kernel, newUser(kernel, { name: 'Grace', email: ada.email }))
    },
  )
  const { status, body } = (await changed) ?? {}
  assert.deepEqual([status, body.code], [401, 'INVALID_TOKEN'])
  const { rows } = await sql`select id from service."user" where email = ${ada.email}`.execute(db)
  assert.deepEqual(rows, [{ id: added.id }])
})

const isLockAwaited = async (): Promise<boolean> => {
  const waiting = sql`select from pg_locks l join pg_database d on d.oid = l.database or l.database is null
    join pg_stat_activity a on a.pid = l.pid and a.datname = current_database() where not l.granted`
  return (await waiting.execute(db)).rows.length > 0
}
