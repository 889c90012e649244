import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, controlDatabase, PASSWORD, testService } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'
import { startProxy } from './proxy.ts'

/** A listener needs a few seconds to reconnect; a busy machine has time. */
const RECOVERY = 60_000

/** Starts a service whose connection to its control database can be cut. */
async function fragileService(timeout = 5_000) {
  const proxy = await startProxy(await controlDatabase())
  const service = await testService({ controlUrl: proxy.url, config: { limits: { timeout } } })
  after(() => proxy.close())
  return { ...service, proxy }
}

async function eventually(condition: () => Promise<boolean>, within = RECOVERY): Promise<void> {
  const since = performance.now()
  while (!(await condition())) {
    assert.ok(performance.now() - since < within, `not within ${within} ms`)
    await sleep(10)
  }
}

/** Asserts that the response is 503 with Retry-After and without internal details. */
function isUnavailable(answer: Answer, code: string): void {
  assert.deepEqual([answer.status, answer.body?.code], [503, code], answer.text)
  assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.doesNotMatch(answer.text, /ECONN|127\.0\.0\.1|postgres|gatehouse_test|terminat/i)
}

test('without the control database, requests get 503 in their envelope; when it returns, they succeed again', async () => {
  const t = await fragileService()
  const ada = await t.signUp('Ada')
  const key = await t.key(['gateway.*'])
  const get = (by: { get(path: string): Promise<Answer> }) => by.get('/api/auth/get-session')
  assert.equal((await get(ada)).status, 200)
  assert.equal((await readiness(t.anon)).status, 200)

  await t.proxy.cut()
  await eventually(async () => !t.service.kernel.coherence.isTrusted())
  isUnavailable(await get(ada), 'SERVICE_UNAVAILABLE')
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  isUnavailable(await signIn(), 'SERVICE_UNAVAILABLE')
  isUnavailable(
    await t.anon.post('/api/auth/sign-up/email', {
      name: 'Bob',
      email: 'bob@example.com',
      password: PASSWORD,
    }),
    'SERVICE_UNAVAILABLE',
  )
  isUnavailable(await key.post('/gateway/fetch', { table_name: 'cities' }), 'api_key_validation_unavailable')
  isUnavailable(await t.admin.get('/admin/api-keys'), 'service_unavailable')

  const ready = await t.anon.get('/health/ready')
  assert.deepEqual([ready.status, ready.body.status], [503, 'unavailable'])
  assert.deepEqual(ready.body.problems, ['The control database cannot be reached'])
  const health = await t.admin.get('/health')
  const states = health.body.components.map(({ name, status }: { name: string; status: string }) => [
    name,
    status,
  ])
  assert.deepEqual([health.status, health.body.status], [200, 'degraded'])
  assert.deepEqual([health.body.versions.postgresql, health.body.clock_drift_ms], [null, null])
  assert.deepEqual(Object.fromEntries(states), {
    control_database: 'offline',
    migrations: 'offline',
    control_role: 'offline',
    'client:default': 'online',
    'client:logging': 'online',
  })
  assert.deepEqual((await t.anon.get('/health/live')).body, { status: 'ok' })
  assert.equal((await t.anon.get('/api/auth/ok')).status, 200)
  assert.equal((await t.admin.get('/metrics')).status, 200, 'metrics must be available during an outage')

  await t.proxy.mend()
  await eventually(async () => (await get(ada)).status === 200)
  await eventually(async () => t.service.kernel.coherence.isTrusted())
  assert.equal((await signIn()).status, 200)
  assert.equal((await readiness(t.anon)).status, 200)
  assert.equal((await key.post('/gateway/fetch', { table_name: 'cities' })).body.code, 'table_not_found')
  assert.ok(!t.log.some((line) => line.includes(PASSWORD) || line.includes(new URL(t.proxy.url).password)))
})

test('a silent control database does not block callers forever, and caches are not used after the lease', async () => {
  const t = await fragileService(2_000)
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
  t.proxy.freeze()
  await eventually(async () => !t.service.kernel.coherence.isTrusted())
  const began = performance.now()
  const answers = await Promise.all([
    ada.get('/api/auth/get-session'),
    t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD }),
    t.anon.get('/health/ready'),
  ])
  for (const answer of answers) assert.ok([503, 504].includes(answer.status), answer.text)
  assert.equal((await t.anon.get('/health/live')).status, 200)
  assert.ok(performance.now() - began < 30_000, `${performance.now() - began} ms`)
  await t.proxy.mend()
  await eventually(async () => (await ada.get('/api/auth/get-session')).status === 200)
})

test('an unreachable client database does not affect other requests', async () => {
  const proxy = await startProxy(await controlDatabase())
  after(() => proxy.close())
  const t = await testService({ config: { clients: { far: { url: proxy.url } } } })
  const far = await t.key(['*'], { client_name: 'far' })
  await proxy.cut()
  const ask = () =>
    far.send('POST', '/gateway/fetch', {
      body: { table_name: 'cities' },
      headers: { 'x-service-client': 'far' },
    })
  const away = await ask()
  assert.equal(away.status, 503, away.text)
  assert.doesNotMatch(away.text, /ECONN|127\.0\.0\.1|postgres:/)
  assert.equal((await readiness(t.anon)).status, 200, 'the service must stay ready')
  const ada = await t.signUp('Ada')
  assert.equal((await ada.get('/api/auth/get-session')).status, 200)
})

test('while draining, running requests finish, started requests get 503 and new connections are refused', async () => {
  const heavy = { memory: 65_536, iterations: 12, concurrency: 1 }
  // Requests are cut off after 70 % of `limits.shutdown`, and after `limits.timeout`. A busy machine needs more than 30 s for two of these hashes.
  const limits = { shutdown: 600_000, timeout: 600_000 }
  const t = await testService({ config: { limits, auth: { password: heavy } } })
  const { email } = await t.signUp('Ada')
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
  const socket = connect(Number(new URL(t.url).port), '127.0.0.1')
  let received = ''
  socket.on('data', (chunk) => {
    received += chunk
  })
  await once(socket, 'connect')
  socket.write('GET /health/ready HTTP/1.1\r\nhost: x\r\n')
  // Both requests run when one hash waits for the other. Hashes are slow, so the service stops in the middle.
  const running = [signIn(), signIn()]
  await eventually(async () => t.service.kernel.hashQueue.depth() === 1)
  const stopping = t.stop()
  await eventually(() =>
    fetch(`${t.url}/ping`).then(
      () => false,
      () => true,
    ),
  )
  socket.write('\r\n')
  await once(socket, 'close')
  assert.match(
    received,
    /^HTTP\/1\.1 503 .*^connection: close\r$.*"problems":\["The service is shutting down"\]/ms,
  )

  const answers = await Promise.all(running)
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('connection')]),
    [
      [200, 'close'],
      [200, 'close'],
    ],
  )
  const answered = performance.now()
  await stopping
  assert.ok(performance.now() - answered < 60_000, 'the stop waited for keep-alive connections')
})

test('requests that do not finish within limits.shutdown are cut off', async () => {
  const heavy = { memory: 65_536, iterations: 20, concurrency: 1 }
  const t = await testService({ config: { limits: { shutdown: 200 }, auth: { password: heavy } } })
  const { email } = await t.signUp('Ada')
  const signIn = () => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
  const cut = Promise.all([signIn(), signIn()].map((running) => assert.rejects(running)))
  await eventually(async () => t.service.kernel.hashQueue.depth() === 1)
  const began = performance.now()
  await t.stop()
  await cut
  assert.ok(performance.now() - began < 30_000, `${performance.now() - began} ms`)
})
