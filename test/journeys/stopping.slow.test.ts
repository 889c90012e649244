import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import pg from 'pg'
import { childrenOf } from '#kernel/db/embedded/processes.ts'
import { testDatabase } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { actor, controlDatabase, PASSWORD, TEST_SECRET } from '#test/harness.ts'
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

test('a stop with a frozen PostgreSQL ends in time and kills its processes; acknowledged writes survive', {
  timeout: 60_000,
}, async (t) => {
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

  const next = await startProgram(home.folder, env)
  t.after(() => next.end('SIGKILL'))
  const headers = { authorization: `Bearer ${body.token}` }
  assert.equal((await actor(next.url).get('/api/auth/get-session', { headers })).status, 200)
  await endInTime(next)
  assert.doesNotMatch(next.output(), /stop_late|stop_failed/)
})

test('a stop ends in time despite dead connections, a hanging mail server and a frozen worker', {
  timeout: 60_000,
}, async (t) => {
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

test('a start that waits for the migration lock logs the wait and can be stopped', {
  timeout: 60_000,
}, async (t) => {
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
  const { rows } = await migrating.query(
    `select from pg_stat_activity where application_name like 'gatehouse%' and datname = current_database()`,
  )
  assert.equal(rows.length, 0, 'no connection is left on the server')
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
