import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Actor, actor, controlDatabase, PASSWORD, type TestService, testService } from '#test/harness.ts'
import { exitOf } from '#test/processes.ts'

/** Of pg in this process, which prints each of its kinds once. */
const warnings: string[] = []
const note = ({ message }: Error) => void (message.includes('client.query') && warnings.push(message))
process.on('warning', note)
after(() => process.off('warning', note))

const controlUrl = await controlDatabase()
/** Like two processes on one database. */
const here = await testService({ controlUrl })
const there = await testService({ controlUrl })
const { db } = here.service.kernel

/** The lease, and a tolerance for a slow machine. */
const LEASE = 3_000
const SLACK = 1_500

const ada = await here.signUp('Ada')
async function signIn(): Promise<{ token: string; id: string }> {
  const { body } = await here.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  const { session } = (await status(here.anon, body.token)).body
  return { token: body.token, id: session.id }
}
const by = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
const status = (by_: Actor, token: string) => by_.get('/api/auth/get-session', by(token))
const signOut = (from: TestService, token: string) => from.anon.post('/api/auth/sign-out', {}, by(token))

/** Milliseconds for a busy machine, beside leases: twenty times what a revocation takes while all processes answer. */
async function slack(): Promise<number> {
  const { token } = await signIn()
  const began = performance.now()
  assert.equal((await signOut(here, token)).status, 200)
  return 20 * (performance.now() - began)
}

async function eventually(isSo: () => boolean, within: number): Promise<void> {
  const since = performance.now()
  while (!isSo()) {
    assert.ok(performance.now() - since < within, `not within ${within} ms`)
    await sleep(5)
  }
}

const listeners = sql`from pg_stat_activity where datname = current_database() and application_name = 'gatehouse listener'`
/** The server lists a session a moment longer than its connection is open. */
const haveListeners = async (count: number) => {
  const listed = async () => (await sql`select ${listeners}`.execute(db)).rows.length
  for (let tries = 0; tries < 500 && (await listed()) !== count; tries++) await sleep(10)
  assert.equal(await listed(), count)
}
const breakListeners = () => sql`select pg_terminate_backend(pid) ${listeners}`.execute(db)

test('a session that one process has revoked is refused by the other as soon as the revocation is answered', async () => {
  for (let round = 0; round < 200; round++) {
    const { token } = await signIn()
    const [revoking, other] = round % 2 === 0 ? [here, there] : [there, here]
    // Both have it in their caches now.
    assert.deepEqual(
      [(await status(other.anon, token)).status, (await status(other.anon, token)).status],
      [200, 200],
    )
    assert.equal((await signOut(revoking, token)).status, 200)
    const after = await Promise.all([status(other.anon, token), status(revoking.anon, token)])
    assert.deepEqual(
      after.map((answer) => answer.status),
      [401, 401],
      `round ${round}`,
    )
  }
})

test('truncating the table of sessions ends them in every process', async () => {
  const { token } = await signIn()
  for (const { anon } of [here, there, here, there]) assert.equal((await status(anon, token)).status, 200)
  await sql`truncate service.session cascade`.execute(db)
  await here.service.kernel.coherence.settle()
  for (const { anon } of [here, there]) assert.equal((await status(anon, token)).status, 401)
})

test('a session that is revoked while it is used is refused from then on, by every process', async () => {
  for (let round = 0; round < 20; round++) {
    const { token } = await signIn()
    let revoked = false
    const late: number[] = []
    const use = async (service: TestService) => {
      for (let asked = 0; asked < 15; asked++) {
        const isLate = revoked
        const answer = await status(service.anon, token)
        if (isLate) late.push(answer.status)
      }
    }
    const users = [use(here), use(there), use(there)]
    await sleep(round / 4)
    await signOut(here, token)
    revoked = true
    await Promise.all(users)
    assert.deepEqual(new Set([401, ...late]), new Set([401]), `round ${round}`)
  }
})

test('a change made by hand in the database is noticed too', async () => {
  const { token, id } = await signIn()
  assert.equal((await status(there.anon, token)).status, 200)
  await db.deleteFrom('session').where('id', '=', id).execute()
  await there.service.kernel.coherence.settle()
  assert.equal((await status(there.anon, token)).status, 401)

  const second = await signIn()
  assert.equal((await status(there.anon, second.token)).body.user.name, 'Ada')
  await db.updateTable('user').set({ name: 'Ada L.' }).where('id', '=', ada.id).execute()
  await there.service.kernel.coherence.settle()
  assert.equal((await status(there.anon, second.token)).body.user.name, 'Ada L.')
})

test('a process that has lost its listener reads from the database until the listener is back', async () => {
  const { coherence } = there.service.kernel
  const { token, id } = await signIn()
  assert.equal((await status(there.anon, token)).status, 200)
  await breakListeners()
  await eventually(() => !coherence.isTrusted(), 10 * LEASE)
  await db.deleteFrom('session').where('id', '=', id).execute()
  assert.equal((await status(there.anon, token)).status, 401, 'nothing is answered from memory')
  await eventually(() => coherence.isTrusted() && here.service.kernel.coherence.isTrusted(), 10 * LEASE)
  await haveListeners(2)
  assert.ok(there.log.some((line) => line.includes('listener_lost')))
})

test('a process that can listen but not renew its lease trusts no cache, and leaks no connection', async () => {
  const both = [here, there].map(({ service }) => service.kernel.coherence)
  await sql`alter table service.process_lease rename to elsewhere`.execute(db)
  await breakListeners()
  await sleep(LEASE + SLACK)
  assert.deepEqual(
    both.map((coherence) => coherence.isTrusted()),
    [false, false],
  )
  await sql`alter table service.elsewhere rename to process_lease`.execute(db)
  await eventually(() => both.every((coherence) => coherence.isTrusted()), 10 * LEASE)
  await haveListeners(2)
})

test('a revocation at the moment when the listeners break is effective too', async () => {
  const { token } = await signIn()
  assert.equal((await status(there.anon, token)).status, 200)
  const [, answer] = await Promise.all([breakListeners(), signOut(here, token)])
  assert.equal(answer.status, 200)
  const after = await Promise.all([status(there.anon, token), status(here.anon, token)])
  assert.deepEqual(
    after.map((one) => one.status),
    [401, 401],
  )
})

test('statements on the connection of a listener never overlap, however many barriers there are', async () => {
  // The test before has broken them.
  await haveListeners(2)
  await eventually(
    () => [here, there].every(({ service }) => service.kernel.coherence.isTrusted()),
    10 * LEASE,
  )
  const most = LEASE + (await slack())
  const work = [here, there].flatMap(({ service: { kernel } }) =>
    Array.from({ length: 20 }, () => [
      kernel.coherence.settle(),
      kernel.coherence.announce(['nothing:1']),
      kernel.coherence.ping(),
    ]),
  )
  const began = performance.now()
  await Promise.all(work.flat())
  assert.ok(performance.now() - began < most, 'no barrier waits for the lease of another process')
  // Warnings are printed in a later turn.
  await sleep(10)
  assert.deepEqual(warnings, [])
})

/** A process of its own on the same database. */
async function process_(context: {
  after(done: () => Promise<void>): void
}): Promise<{ child: ChildProcess; anon: Actor }> {
  const code = `
    import { testService } from ${JSON.stringify(import.meta.resolve('#test/harness.ts'))}
    const { url, stop } = await testService({ controlUrl: process.argv[1] })
    process.once('SIGTERM', () => stop().then(() => process.exit(0)))
    console.log(JSON.stringify({ url }))`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code, controlUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  context.after(async () => {
    child.kill('SIGCONT')
    child.kill('SIGTERM')
    await exitOf(child)
  })
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{')) return { child, anon: actor(JSON.parse(line).url) }
  }
  throw new Error('the process ended before it served')
}

test('a process that hangs delays a revocation by its lease at most, and serves nothing stale afterwards', async (context) => {
  const { child, anon } = await process_(context)
  const { token } = await signIn()
  assert.deepEqual([(await status(anon, token)).status, (await status(anon, token)).status], [200, 200])
  const most = 3 * LEASE + (await slack())
  child.kill('SIGSTOP')
  const began = performance.now()
  assert.equal((await signOut(here, token)).status, 200)
  const took = performance.now() - began
  assert.ok(took < most, `${took} ms`)
  child.kill('SIGCONT')
  assert.equal((await status(anon, token)).status, 401)
})

test('a revocation does not wait for a process that has stopped', async () => {
  const { token } = await signIn()
  const most = LEASE + (await slack())
  await there.stop()
  const began = performance.now()
  assert.equal((await signOut(here, token)).status, 200)
  assert.ok(performance.now() - began < most, `${performance.now() - began} ms`)
  const { rows } = await sql`select from service.process_lease where expires_at > now()`.execute(db)
  assert.equal(rows.length, 1)
})
