import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { Agent, request } from 'undici'
import { freePort } from '#test/free-port.ts'
import { actor, controlDatabase, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'
import { type StartedProxy, startProxy, WITHOUT_PROXIES } from '#test/proxies.ts'
import { blocksOf } from './pages.ts'
import { createTemporaryHome, type Program, startProgram } from './program.ts'

/** Each restarts both processes. */
const ROUNDS = Number(process.env.ROLLING_RESTARTS ?? 3)
/** Requests a second through each of the two proxies. */
const RATE = 100
const ADMIN_KEY = 'k'.repeat(40)

test('rolling restarts of two processes behind nginx and HAProxy fail and reset no request', {
  timeout: 900_000,
  skip: WITHOUT_PROXIES,
}, async (t) => {
  const ports = [await freePort(), await freePort()] as const
  const services = await startServices(t, ports)
  const email = 'ada@example.com'
  const signUp = { name: 'Ada', email, password: PASSWORD }
  const { body } = await actor(services.url).post('/api/auth/sign-up/email', signUp)
  const loads: { name: string; proxy: StartedProxy; load: ReturnType<typeof startLoad> }[] = []
  t.after(() => Promise.all(loads.map(({ load, proxy }) => load.end().finally(proxy.stop))))
  for (const name of ['nginx', 'haproxy'] as const) {
    const proxy = await startProxy(name, ports)
    loads.push({ name, proxy, load: startLoad(proxy.url, { authorization: `Bearer ${body.token}` }) })
  }
  for (let round = 0; round < ROUNDS; round++) await services.rollingRestart(loads[0]?.proxy.url ?? '')
  const results = await Promise.all(loads.map(({ load }) => load.end()))
  for (const [index, { name, proxy }] of loads.entries()) {
    const { answered = 0, failed = [] } = results[index] ?? {}
    t.diagnostic(`${answered} requests through ${name}, ${failed.length} failed\n${proxy.output()}`)
    assert.ok(answered > ROUNDS * RATE)
  }
  assert.deepEqual(
    results.flatMap(({ failed }) => failed),
    [],
  )
  assert.equal(services.restarts(), 2 * ROUNDS)
  assert.doesNotMatch(services.output(), /stop_late|stop_failed|"level":"error"/)
})

/** Two processes on one database, as units of systemd run them. */
async function startServices(t: TestContext, ports: readonly [number, number]) {
  const home = await createTemporaryHome()
  const env = {
    NODE_ENV: 'production',
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_KEY_12: ADMIN_KEY,
    SERVICE_RATE_LIMITS__ENABLED: 'false',
    SERVICE_LOG__REQUESTS: 'all',
  }
  const running = new Map<number, Program>()
  const ended: string[] = []
  const start = async (port: number) =>
    void running.set(port, await startProgram(home.folder, { ...env, SERVICE_SERVER__PORT: String(port) }))
  t.after(async () => {
    await Promise.all([...running.values()].map((program) => program.end('SIGKILL')))
    await home.remove()
  })
  await Promise.all(ports.map(start))
  const restarts: Promise<void>[] = []
  const restart = async (port: number) => {
    const program = running.get(port)
    assert.ok(program)
    assert.equal(await program.end('SIGTERM'), 0)
    ended.push(program.output())
    await start(port)
  }
  // The systemctl of the script asks here.
  const supervisor = await startLoopbackServer((request, response) => {
    restarts.push(restart(Number(request.url?.slice(1))))
    response.end()
  })
  const bin = path.join(home.folder, 'systemctl')
  await writeFile(
    bin,
    `#!/bin/sh\n[ "$1 $2" = "restart --no-block" ] && curl -fs ${supervisor.url}/\${3#gatehouse@}\n`,
  )
  await chmod(bin, 0o755)
  return {
    url: running.get(ports[0])?.url ?? '',
    restarts: () => ended.length,
    output: () => ended.join(''),
    /** Runs the script of the guide. */
    async rollingRestart(proxyUrl: string): Promise<void> {
      const blocks = blocksOf('docs/guides/deploying.md').filter(
        ({ needs }) => needs === 'two units of systemd',
      )
      assert.equal(blocks.length, 1)
      const script = (blocks[0]?.text ?? '')
        .replace('8080 8081', ports.join(' '))
        .replaceAll('https://auth.example.com', proxyUrl)
      const PATH = `${home.folder}:${process.env.PATH}`
      const child = spawn('/bin/sh', ['-e', '-c', script], {
        env: { ...process.env, PATH },
        stdio: 'inherit',
      })
      const [code] = await once(child, 'exit')
      assert.equal(code, 0)
      await Promise.all(restarts)
    },
  }
}

/** Sends requests at a fixed rate, over as many connections as it takes, until `end` is called. Nothing is tried again. */
function startLoad(url: string, headers: Readonly<Record<string, string>>) {
  const agent = new Agent({ connections: 50, pipelining: 1 })
  const failed: string[] = []
  const open = new Set<Promise<void>>()
  let answered = 0
  let sent = 0
  const REQUESTS = [
    { method: 'GET', path: '/api/auth/get-session' },
    { method: 'POST', path: '/api/auth/sign-in/email', body: { email: 'nobody@example.com', password: '' } },
  ] as const
  const send = async () => {
    const { method, path, ...more } = REQUESTS[sent++ % REQUESTS.length] ?? REQUESTS[0]
    const json = { ...headers, 'content-type': 'application/json' }
    const body = 'body' in more ? { body: JSON.stringify(more.body), headers: json } : { headers }
    try {
      const response = await request(`${url}${path}`, { method, ...body, dispatcher: agent })
      await response.body.dump()
      if (response.statusCode < 500) answered++
      else failed.push(`${method} ${path}: ${response.statusCode}`)
    } catch (error) {
      failed.push(`${method} ${path}: ${error}`)
    }
  }
  const timer = setInterval(() => {
    const request = send().finally(() => open.delete(request))
    open.add(request)
  }, 1_000 / RATE)
  const end = async () => {
    clearInterval(timer)
    await Promise.all(open)
    await agent.close()
    return { answered, failed }
  }
  let ended: ReturnType<typeof end> | undefined
  return {
    end() {
      ended ??= end()
      return ended
    },
  }
}
