import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { prepareLogging } from '#gateway/logging/logging-tables.ts'
import { createAuditLog } from '#gateway/management/audit.ts'
import { systemClock } from '#kernel/clock.ts'
import { migrate } from '#kernel/db/migrate.ts'
import { createLog } from '#kernel/log.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { controlDatabase, PASSWORD, testService } from '#test/harness.ts'
import { type DatabaseProxy, type Passage, startProxy } from './proxy.ts'

/** Closes a connection of this name after `left` more responses of the server. */
type Plan = { readonly name: string; left: number; isOver: boolean }

let plan: Plan | undefined
const onAnswer = (passage: Passage): void => {
  if (plan === undefined || plan.isOver || passage.name !== plan.name || --plan.left > 0) return
  plan.isOver = true
  passage.end()
}

/** Repeats the work while closing its connection after the first response, then after the second, and so on. Returns the number of steps. */
async function atEachStep(name: string, work: () => Promise<void>, next = async () => {}): Promise<number> {
  for (let step = 1; ; step++) {
    const current = { name, left: step, isOver: false }
    plan = current
    await work()
    plan = undefined
    await next()
    if (!current.isOver) return step - 1
    assert.ok(step < 100, 'more than 100 responses')
  }
}

async function startCrashableProxy(databaseUrl: string): Promise<DatabaseProxy> {
  const proxy = await startProxy(databaseUrl, { onAnswer })
  after(() => proxy.close())
  return proxy
}

const many = { requests: 100_000 }
const rules = { sign_up: many, sign_in: many, mail: many, mail_recipient: many, default: many }
const { url: controlUrl } = await startCrashableProxy(await controlDatabase())
const t = await testService({ controlUrl, config: { rate_limits: { enabled: true, rules } } })

let people = 0
const newEmail = () => `ada-${++people}@example.com`
const signUp = (email = newEmail()) =>
  t.anon.post('/api/auth/sign-up/email', { name: 'Ada', email, password: PASSWORD })
const signIn = (email: string) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })

for (const [name, least] of [
  ['gatehouse', 4],
  ['gatehouse pipelined', 1],
  ['gatehouse limits', 2],
] as const)
  test(`the loss of a "${name}" connection at any step fails only one request`, async () => {
    const work = async () => {
      const email = newEmail()
      const first = await signUp(email)
      const second = await signIn(email)
      const refused = [first, second].filter(({ status }) => status === 503)
      for (const { body, headers } of refused)
        assert.deepEqual([body.code, headers.get('retry-after')], ['SERVICE_UNAVAILABLE', '1'])
      assert.ok(refused.length <= 1 || first.status === 503, `${first.text} ${second.text}`)
      // After a failed sign-up the account may or may not exist: the response to COMMIT may have been lost.
      if (first.status === 200 && second.status !== 503) assert.equal(second.status, 200, second.text)
    }
    const next = async () => assert.equal((await signUp()).status, 200)
    const steps = await atEachStep(name, work, next)
    assert.ok(steps >= least, `${steps} steps`)
  })

test('a listener that is lost twice reconnects, and requests are served in the meantime', async () => {
  const { coherence } = t.service.kernel
  for (const left of [1, 2]) {
    const current = { name: 'gatehouse listener', left, isOver: false }
    plan = current
    await eventually(() => current.isOver)
    assert.equal((await signUp()).status, 200)
  }
  plan = undefined
  await eventually(() => coherence.isTrusted())
})

test('the loss of a connection of the job queue loses no mail', async () => {
  const mailed = new Set<string>()
  const emails: string[] = []
  const steps = await atEachStep('gatehouse jobs', async () => {
    const email = newEmail()
    assert.equal((await signUp(email)).status, 200)
    const { status } = await t.anon.post('/api/auth/request-password-reset', { email })
    // The first use of a queue reads its settings through the queue's own connections.
    if (status === 200) emails.push(email)
    else assert.equal(status, 503)
    // Fetched jobs are returned to the queue, or expire there.
    const mails = await t.mails().catch(() => [])
    for (const mail of mails) for (const to of emails) if (mail.includes(to)) mailed.add(to)
  })
  assert.ok(steps >= 2, `${steps} steps`)
  const rows = await withClient(t.controlUrl, async (client) => {
    return (await client.query(`select state from service_jobs.job where state <> 'completed'`)).rows
  })
  assert.ok(
    mailed.size + rows.length >= emails.length,
    `${mailed.size} and ${rows.length} of ${emails.length}`,
  )
})

test('if the audit log loses its connection, the operation is rejected before it starts or its result is kept', async () => {
  const database = await testDatabase()
  await prepareLogging(database.url, undefined)
  const { url } = await startCrashableProxy(database.url)
  const audit = createAuditLog(url, { now: systemClock, log: createLog({ level: 'silent', format: 'json' }) })
  const act = {
    requestId: 'r',
    actorKeyId: 'k',
    client: 'default',
    operation: 'create',
    schema: 'public',
    object: 'a',
    statement: '',
    objectType: 'table',
  } as const
  const work = async () => {
    let hasStarted = false
    const change = async () => {
      hasStarted = true
      return 'done'
    }
    await audit.around(act, change).then(
      (result) => assert.equal(result, 'done'),
      (error) => assert.deepEqual([error.code, hasStarted], ['audit_unavailable', false]),
    )
  }
  // The next caller may take the closed connection just after its release.
  const next = () => eventually(() => audit.around(act, async () => true).catch(() => false))
  assert.equal(await atEachStep('gatehouse audit', work, next), 2)
  await audit.close()
})

test('a migration fails if its connection is lost at any step, and the next run continues', async () => {
  const database = await testDatabase()
  const { url } = await startCrashableProxy(database.url)
  let failures = 0
  const steps = await atEachStep('gatehouse migrate', async () => {
    await migrate(url).catch((error: unknown) => {
      assert.ok(error instanceof Error)
      failures++
    })
  })
  assert.ok(failures >= 4, `${failures} failures in ${steps} steps`)
  assert.deepEqual(await migrate(database.url), [])
})
