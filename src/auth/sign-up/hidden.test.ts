import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { mock, test } from 'node:test'
import pg from 'pg'
import { importUsers } from '#identity/import/import.ts'
import { linesOf } from '#identity/import/lines.ts'
import type { Heavy } from '#kernel/heavy.ts'
import { type Answer, PASSWORD, testService } from '#test/harness.ts'

const HIDING = { hide_registered_emails: true, email_password: { require_email_verification: true } }
const t = await testService({ config: { auth: HIDING } })
const { kernel } = t.service
const { db } = kernel

let hashes = 0
const { heavy } = kernel
const counted: Heavy = Object.assign(
  <T>(work: () => Promise<T>, weight?: number) => {
    hashes++
    return heavy(work, weight)
  },
  { expectRoom: heavy.expectRoom, depth: heavy.depth },
)
mock.property(kernel as { heavy: Heavy }, 'heavy', counted)

const MANY = Array.from({ length: 5 }, (_, index) => `password number ${index}`)
const [P1, P2, P3] = ['the first password', 'the second password', 'the third password']
const signUp = (email: string, password: string, username?: string) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Eve', email, password, username })
const byEmail = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })
const byUsername = (username: string, password: string) =>
  t.anon.post('/api/auth/sign-in/username', { username, password })
const available = (username: string) => t.anon.post('/api/auth/is-username-available', { username })

/** Of people who have proven their address. */
async function register(name: string): Promise<string> {
  const email = `${name}@example.com`
  assert.equal((await signUp(email, PASSWORD, `${name}_real`)).status, 200)
  await db.updateTable('user').set({ emailVerified: true }).where('email', '=', email).execute()
  return email
}

/** All that a stranger sees: status, code, headers, cookies, and how many hashes it took. */
async function seen(ask: () => Promise<Answer>) {
  hashes = 0
  const { status, body, headers } = await ask()
  const cookies = headers.getSetCookie().map((cookie) => cookie.replace(/=[^;]*/, ''))
  return { status, code: body.code ?? body.available, names: [...headers.keys()], cookies, hashes }
}

/** What somebody does who wants to know whether the address has an account. */
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
    // A second time, and a third: which passwords are good then?
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
    // And many times.
    ...MANY.map((password) => () => signUp(email, password)),
    ...[P1, P2, P3, ...MANY].map((password) => () => byEmail(email, password)),
  ]
  const all: Awaited<ReturnType<typeof seen>>[] = []
  for (const step of steps) all.push(await seen(step))
  return all
}

test('whatever is tried, an address with an account looks like one that has just been signed up', async () => {
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
    'every password that was chosen',
  )
})

test('a sign-up takes as many statements whether or not the address has an account', async () => {
  const proven = await register('ina')
  await signUp('ivo@example.com', PASSWORD)
  await t.mails()
  const sent = mock.method(pg.Client.prototype, 'query')
  const statements = async (email: string, username?: string) => {
    sent.mock.resetCalls()
    assert.equal((await signUp(email, P1, username)).status, 200)
    // What a process says by itself, every second.
    return sent.mock.calls.filter(({ arguments: [text] }) => !/process_lease/.test(JSON.stringify(text)))
      .length
  }
  const free = await statements('iris@example.com')
  assert.ok(free >= 5, 'a transaction, the account and the mail')
  assert.deepEqual([await statements(proven), await statements('ivo@example.com')], [free, free])
  assert.deepEqual(
    [await statements(proven, 'ina_two'), await statements('ivo@example.com', 'ivo_two')],
    [free, free],
  )
  sent.mock.restore()
  await t.mails()
})

test('the account stays as it was, its owner signs in, and hears of what was tried', async () => {
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
  assert.deepEqual(sessions, [{ userId: before[0]?.id }], 'and nobody else has a session')
})

test('an address that is not proven gets its link again, and stays with the first password', async () => {
  await signUp('carol@example.com', P1)
  await t.mails()
  assert.equal((await signUp('carol@example.com', P2)).status, 200)
  const mails = await t.mails()
  assert.equal(mails.length, 1)
  assert.match(mails[0] ?? '', /^Subject: Verify your email address/m)
})

test('nobody takes a username that a hidden sign-up has, by whichever way', async () => {
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

test('a hidden sign-up is no way to clear the bucket of the account that has the address', async () => {
  const limited = await testService({
    controlUrl: t.controlUrl,
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

test('guesses of before a sign-up count after it, whether or not there was an account', async () => {
  const many = { requests: 1_000, window: 60_000 }
  const rules = { sign_in: many, sign_up: many }
  const t = await testService({ config: { auth: HIDING, rate_limits: { enabled: true, rules } } })
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
  await t.service.kernel.db.updateTable('user').set({ emailVerified: true }).execute()
  const registered = await outcomes('guessed')
  assert.deepEqual(registered, [401, 401, 401, 401, 401, 429, 429, 429])
  assert.deepEqual(await outcomes('nobody'), registered)
})
