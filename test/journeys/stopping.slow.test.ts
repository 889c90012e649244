import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Agent, request } from 'undici'
import { childrenOf } from '#kernel/db/embedded/processes.ts'
import { testDatabase } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { actor, controlDatabase, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { isAlive } from '#test/processes.ts'
import { processesOf } from '../crashable-server.ts'
import { startProxy } from '../hostile/proxy.ts'
import { createTemporaryHome, type Started, spawnProgram, startProgram } from './program.ts'

/** `limits.shutdown` of these tests, in seconds. */
const PATIENCE = 2

/** Stops the program and asserts that it exits in time, with some tolerance for a busy machine. */
async function endInTime(program: Started): Promise<void> {
  const since = performance.now()
  assert.equal(await program.end('SIGTERM'), 0, program.output())
  const took = performance.now() - since
  assert.ok(took < (PATIENCE + 8) * 1_000, `${Math.round(took)} ms\n${program.output()}`)
}

test('a stop with a frozen PostgreSQL ends in time and kills its processes; acknowledged writes survive', async (t) => {
  const home = await createTemporaryHome()
  const env = { SERVICE_LIMITS__SHUTDOWN: `${PATIENCE}s` }
  const program = await startProgram(home.folder, env)
  const dir = path.join(home.folder, 'data/postgres')
  t.after(async () => {
    await program.end('SIGKILL')
    await home.remove()
  })
  const user = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }
  const { body } = await actor(program.url).post('/api/auth/sign-up/email', user)

  for (const pid of await processesOf(dir)) process.kill(pid, 'SIGSTOP')
  const cut = assert.rejects(actor(program.url).post('/api/auth/sign-in/email', user))
  await endInTime(program)
  await cut
  assert.match(program.output(), /"event":"stop_late"/)

  // An orderly stop needs more than two seconds of a busy machine, and logs that it is late.
  const next = await startProgram(home.folder, { SERVICE_LIMITS__SHUTDOWN: '60s' })
  t.after(() => next.end('SIGKILL'))
  const headers = { authorization: `Bearer ${body.token}` }
  assert.equal((await actor(next.url).get('/api/auth/get-session', { headers })).status, 200)
  await endInTime(next)
  assert.doesNotMatch(next.output(), /stop_late|stop_failed/)
})

test('a stop ends in time despite dead connections, a hanging mail server and a frozen worker', async (t) => {
  const home = await createTemporaryHome()
  const proxy = await startProxy(await controlDatabase())
  const silent = createServer().listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as AddressInfo // the address of a TCP server
  const program = await startProgram(home.folder, {
    DATABASE_URL: proxy.url,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_LIMITS__SHUTDOWN: `${PATIENCE}s`,
    SERVICE_SERVER__WORKERS: '2',
    SERVICE_MAIL__TRANSPORT: 'smtp',
    SERVICE_MAIL__FROM: 'gatehouse@example.com',
    SERVICE_MAIL__SMTP_URL: `smtp://127.0.0.1:${port}`,
  })
  t.after(async () => {
    await program.end('SIGKILL')
    await proxy.close()
    silent.close()
    await home.remove()
  })
  const mailed = once(silent, 'connection')
  const anon = actor(program.url)
  const user = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }
  await anon.post('/api/auth/sign-up/email', user)
  await anon.post('/api/auth/send-verification-email', { email: user.email })
  await mailed
  const workers = await childrenOf(program.child.pid ?? 0)
  assert.equal(workers.length, 2)
  proxy.freeze()
  process.kill(workers[0] ?? 0, 'SIGSTOP')
  await endInTime(program)
  await eventually(() => workers.every((pid) => !isAlive(pid)))
})

for (const workers of ['1', '2'])
  test(`SIGTERM with 100 requests in flight on ${workers} process(es): all are answered, and so are later ones while the service drains`, async (t) => {
    const home = await createTemporaryHome()
    const program = await startProgram(home.folder, {
      DATABASE_URL: await controlDatabase(),
      SERVICE_SECRET: TEST_SECRET,
      SERVICE_SERVER__WORKERS: workers,
      SERVICE_SERVER__DRAIN: '20s',
      // Requests are cut off after 70 % of it. A busy machine needs more than 42 s for two hundred hashes of the usual memory, and the last of
      // them would be late.
      SERVICE_LIMITS__SHUTDOWN: '10m',
      SERVICE_LIMITS__TIMEOUT: '10m',
      SERVICE_AUTH__PASSWORD__MEMORY: '8192',
      SERVICE_AUTH__PASSWORD__QUEUE: '1000',
      SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
    })
    t.after(async () => {
      await program.end('SIGKILL')
      await home.remove()
    })
    const user = { name: 'Ada', email: 'ada@example.com', password: PASSWORD }
    await actor(program.url).post('/api/auth/sign-up/email', user)
    const agent = new Agent({ pipelining: 1 })
    t.after(() => agent.destroy())
    const signIns = (count: number) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const answer = await request(`${program.url}/api/auth/sign-in/email`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify(user),
            dispatcher: agent,
          })
          await answer.body.dump()
          return answer.statusCode
        }),
      )
    const before = signIns(100)
    await Promise.race([before, sleep(50)])
    const ended = program.end('SIGTERM')
    await eventually(async () => (await actor(program.url).get('/health/ready')).status === 503)
    const later = signIns(100)
    assert.deepEqual(new Set([...(await before), ...(await later)]), new Set([200]))
    assert.equal(await ended, 0, program.output())
    assert.doesNotMatch(program.output(), /stop_late|stop_failed/)
  })

test('a second signal ends a service that drains at once', async (t) => {
  const home = await createTemporaryHome()
  const program = await startProgram(home.folder, {
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__DRAIN: '30m',
    SERVICE_LIMITS__SHUTDOWN: '1h',
  })
  t.after(async () => {
    await program.end('SIGKILL')
    await home.remove()
  })
  program.child.kill('SIGTERM')
  await eventually(async () => (await actor(program.url).get('/health/ready')).status === 503)
  // A signal within a second of the first counts as the same one.
  while (program.child.exitCode === null) {
    program.child.kill('SIGTERM')
    await sleep(100)
  }
  assert.equal(program.child.exitCode, 1)
})

test('a start that waits for the migration lock logs the wait and can be stopped', async (t) => {
  const home = await createTemporaryHome()
  const { url } = await testDatabase()
  const migrating = new pg.Client({ connectionString: url })
  await migrating.connect()
  await migrating.query('select pg_advisory_lock(7462001)')
  const program = spawnProgram(home.folder, { DATABASE_URL: url })
  t.after(async () => {
    await program.end('SIGKILL')
    await migrating.end()
    await home.remove()
  })
  await eventually(() =>
    /"event":"start_waits".*Waiting for another process to finish migrating/.test(program.output()),
  )
  await endInTime(program)
  assert.doesNotMatch(program.output(), /"event":"ready"/)
  // The server lists a session a moment longer than its process lives. One that still waited for the lock would stay.
  await eventually(async () => {
    const { rowCount } = await migrating.query(
      `select from pg_stat_activity where application_name like 'gatehouse%' and datname = current_database()`,
    )
    return rowCount === 0
  })
})
