import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { mock, test } from 'node:test'
import pg from 'pg'
import { importUsers } from '#identity/import/import.ts'
import { linesOf } from '#kernel/lines.ts'
import type { WorkQueue } from '#kernel/work-queue.ts'
import { type Answer, PASSWORD, testClock, testService } from '#test/harness.ts'
import { addWebhook } from '#test/webhooks.ts'

const HIDING = { hide_registered_emails: true, email_password: { require_email_verification: true } }
const t = await testService({ config: { auth: HIDING } })
const { kernel } = t.service
const { db } = kernel

let hashes = 0
const { hashQueue } = kernel
const counted: WorkQueue = Object.assign(
  <T>(work: () => Promise<T>, weight?: number) => {
    hashes++
    return hashQueue(work, weight)
  },
  { expectRoom: hashQueue.expectRoom, depth: hashQueue.depth },
)
mock.property(kernel as { hashQueue: WorkQueue }, 'hashQueue', counted)

const MANY = Array.from({ length: 5 }, (_, index) => `password number ${index}`)
const [P1, P2, P3] = ['the first password', 'the second password', 'the third password']
const signUp = (email: string, password: string, username?: string) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Eve', email, password, username })
const byEmail = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })
const byUsername = (username: string, password: string) =>
  t.anon.post('/api/auth/sign-in/username', { username, password })
const available = (username: string) => t.anon.post('/api/auth/is-username-available', { username })

/** Accounts with a proven address. */
async function register(name: string): Promise<string> {
  const email = `${name}@example.com`
  assert.equal((await signUp(email, PASSWORD, `${name}_real`)).status, 200)
  await db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date() })
    .where('email', '=', email)
    .execute()
  return email
}

/** Everything that a stranger can observe: status, code, headers, cookies, and the number of hashes. */
async function seen(ask: () => Promise<Answer>) {
  hashes = 0
  const { status, body, headers } = await ask()
  const cookies = headers.getSetCookie().map((cookie) => cookie.replace(/=[^;]*/, ''))
  return { status, code: body.code ?? body.available, names: [...headers.keys()], cookies, hashes }
}

/** The requests of a stranger who wants to find out whether the address has an account. */
async function probe(email: string, mark: string) {
  const [u1, u2, u3] = [`${mark}_one`, `${mark}_two`, `${mark}_three`]
  const steps: readonly (() => Promise<Answer>)[] = [
    () => signUp(email, P1, u1),
    () => available(u1),
    () => signUp(`other-${mark}@example.com`, P1, u1),
    () => byEmail(email, P1),
    () => byUsername(u1, P1),
    () => byEmail(email, 'a wrong password'),
    () => byUsername(u1, 'a wrong password'),
    // A second and a third sign-up: which passwords are right then?
    () => signUp(email, P2, u1),
    () => signUp(email, P2, u2),
    () => byEmail(email, P1),
    () => byEmail(email, P2),
    () => byUsername(u1, P2),
    () => byUsername(u2, P2),
    () => signUp(email, P3, u3),
    () => byEmail(email, P1),
    () => byEmail(email, P2),
    () => byEmail(email, P3),
    () => available(u1),
    () => available(u2),
    () => available(u3),
    () => byUsername(u2, P2),
    () => byUsername(u3, P3),
    // And many more.
    ...MANY.map((password) => () => signUp(email, password)),
    ...[P1, P2, P3, ...MANY].map((password) => () => byEmail(email, password)),
  ]
  const all: Awaited<ReturnType<typeof seen>>[] = []
  for (const step of steps) all.push(await seen(step))
  return all
}

test('no request tells an address with an account from one that has just been signed up', async () => {
  const taken = await probe(await register('ada'), 'taken')
  assert.equal((await signUp('sue@example.com', PASSWORD, 'sue_real')).status, 200)
  const unproven = await probe('sue@example.com', 'unproven')
  const free = await probe('nobody@example.com', 'free')
  assert.deepEqual(taken, free)
  assert.deepEqual(unproven, free)
  const codes = free.map(({ code }) => code)
  assert.deepEqual(codes.slice(1, 6), [
    false,
    'USERNAME_IS_ALREADY_TAKEN',
    'EMAIL_NOT_VERIFIED',
    'EMAIL_NOT_VERIFIED',
    'INVALID_EMAIL_OR_PASSWORD',
  ])
  assert.ok(
    codes.slice(-8).every((code) => code === 'EMAIL_NOT_VERIFIED'),
    'every password of a sign-up',
  )
})

test('a sign-up takes the same number of statements with an account and without', async () => {
  const proven = await register('ina')
  await signUp('ivo@example.com', PASSWORD)
  await t.mails()
  const sent = mock.method(pg.Client.prototype, 'query')
  const statements = async (email: string, username?: string) => {
    sent.mock.resetCalls()
    assert.equal((await signUp(email, P1, username)).status, 200)
    // A process sends the first two by itself, again and again; it reads the webhooks until they are cached, in either case. The first
    // BEGIN of a connection goes by itself (joined-begin.ts).
    const isCounted = (query: unknown) => {
      const text = JSON.stringify(query)
      if (/process_lease|from service\.webhook where|"text":"begin"/.test(text)) return false
      return !/service_jobs/.test(text) || /INSERT INTO service_jobs\.job/i.test(text)
    }
    return sent.mock.calls.filter(({ arguments: [text] }) => isCounted(text)).length
  }
  const free = await statements('iris@example.com')
  assert.ok(free >= 5, 'a transaction, the account and the mail')
  assert.deepEqual([await statements(proven), await statements('ivo@example.com')], [free, free])
  assert.deepEqual(
    [await statements(proven, 'ina_two'), await statements('ivo@example.com', 'ivo_two')],
    [free, free],
  )
  const hook = await addWebhook(kernel, {
    url: 'https://hooks.example.com',
    routeKey: 'auth.*',
    clientName: null,
  })
  const withWebhook = await statements('ines@example.com')
  assert.ok(withWebhook > free, 'the event')
  assert.deepEqual(
    [await statements(proven), await statements('ivo@example.com')],
    [withWebhook, withWebhook],
  )
  sent.mock.restore()
  const events = await db.selectFrom('webhookDelivery').select('webhookId').execute()
  assert.deepEqual(events, [{ webhookId: hook.id }], 'a hidden sign-up has none')
  await db.updateTable('webhook').set({ isActive: false, updatedAt: kernel.now() }).execute()
  await kernel.coherence.settle()
  await t.mails()
})

test('the account stays as it was, and its owner can sign in and gets a notice', async () => {
  const email = await register('bob')
  await t.mails()
  const before = await db.selectFrom('user').selectAll().where('email', '=', email).execute()
  await signUp(email, P1, 'not_bob')
  await byEmail(email, P1)
  const mails = await t.mails()
  assert.equal(mails.length, 2)
  for (const mail of mails) {
    assert.match(mail, /^To: bob@example.com/m)
    assert.match(mail, /^Subject: You already have an account/m)
    assert.doesNotMatch(mail, /not_bob|http:/)
  }
  assert.deepEqual(await db.selectFrom('user').selectAll().where('email', '=', email).execute(), before)
  const { status, body } = await byEmail(email, PASSWORD)
  assert.deepEqual([status, body.user.username], [200, 'bob_real'])
  const sessions = await db.selectFrom('session').select('userId').execute()
  assert.deepEqual(sessions, [{ userId: before[0]?.id }], 'no other session exists')
})

test('an address that is not proven gets its link again, and stays with the first password', async () => {
  await signUp('carol@example.com', P1)
  await t.mails()
  assert.equal((await signUp('carol@example.com', P2)).status, 200)
  const mails = await t.mails()
  assert.equal(mails.length, 1)
  assert.match(mails[0] ?? '', /^Subject: Verify your email address/m)
})

test('a username of a hidden sign-up cannot be taken in any way', async () => {
  const email = await register('dan')
  await signUp(email, P1, 'reserved')
  const { body } = await byEmail(email, PASSWORD)
  const answer = await t.anon.post(
    '/api/auth/update-user',
    { username: 'Reserved' },
    { headers: { authorization: `Bearer ${body.token}` } },
  )
  assert.equal(answer.body.code, 'USERNAME_IS_ALREADY_TAKEN')
  const line = JSON.stringify({ email: 'imported@example.com', name: 'Imported', username: 'reserved' })
  const complaints: string[] = []
  const lines = linesOf(Readable.from([Buffer.from(line)]))
  const report = await importUsers(kernel, lines, {
    dryRun: false,
    onBadLine: (_number, why) => complaints.push(why),
  })
  assert.deepEqual([report.added, complaints], [0, ['the username belongs to a user with another email']])
})

test('of many sign-ups with one username at once, hidden or not, exactly one gets it', async () => {
  const emails = await Promise.all(Array.from({ length: 5 }, (_, index) => register(`many${index}`)))
  const answers = await Promise.all([
    ...emails.map((email) => signUp(email, P1, 'wanted')),
    ...emails.map((email) => signUp(`new-${email}`, P1, 'wanted')),
  ])
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array(9).fill(409)])
})

test('a hidden sign-up cannot clear the bucket of the account that has the address', async () => {
  const limited = await testService({
    controlUrl: t.controlUrl,
    // The wait after wrong guesses must not elapse on a slow machine.
    clock: testClock({ isStopped: true }),
    config: {
      auth: HIDING,
      rate_limits: {
        enabled: true,
        rules: { sign_in: { requests: 1_000 }, mail_recipient: { requests: 1_000 } },
      },
    },
  })
  const email = await register('frank')
  await signUp(email, P1)
  const guess = (password: string) => limited.anon.post('/api/auth/sign-in/email', { email, password })
  for (let wrong = 0; wrong < 5; wrong++) {
    assert.equal((await guess('a wrong password')).status, 401)
    if (wrong < 4) assert.equal((await guess(P1)).body.code, 'EMAIL_NOT_VERIFIED')
  }
  assert.equal((await guess('a wrong password')).status, 429)
})

test('guesses before a sign-up count after it, with an account and without', async () => {
  const many = { requests: 1_000, window: 60_000 }
  const rules = { sign_in: many, sign_up: many }
  const t = await testService({
    // The wait after wrong guesses must not elapse on a slow machine.
    clock: testClock({ isStopped: true }),
    config: { auth: HIDING, rate_limits: { enabled: true, rules } },
  })
  const sent = (path: string, body: object) => t.anon.post(`/api/auth${path}`, body)
  const outcomes = async (name: string) => {
    const email = `${name}@example.com`
    const guess = async (path: string, body: object) =>
      (await sent(`/sign-in/${path}`, { ...body, password: 'wrong password' })).status
    const statuses: number[] = []
    for (let free = 0; free < 5; free++) statuses.push(await guess('email', { email }))
    await sent('/sign-up/email', { name: 'Eve', email, password: P1, username: `${name}_eve` })
    return [
      ...statuses,
      await guess('email', { email }),
      await guess('username', { username: `${name}_eve` }),
      (await sent('/sign-in/email', { email, password: P1 })).status,
    ]
  }
  const owner = { name: 'Ada', email: 'guessed@example.com', password: PASSWORD, username: 'guessed_real' }
  await sent('/sign-up/email', owner)
  await t.service.kernel.db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date() })
    .execute()
  const registered = await outcomes('guessed')
  assert.deepEqual(registered, [401, 401, 401, 401, 401, 429, 429, 429])
  assert.deepEqual(await outcomes('nobody'), registered)
})
