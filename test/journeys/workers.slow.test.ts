import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { childrenOf } from '#kernel/db/embedded/processes.ts'
import { withClient } from '#test/database.ts'
import { actor, controlDatabase, PASSWORD, TEST_SECRET } from '#test/harness.ts'
import { isAlive } from '#test/processes.ts'
import { createTemporaryHome, type Program, startProgram } from './program.ts'

/** A keep-alive connection. The primary has assigned it to one worker, which serves all of its requests. */
function connection(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const status = (token: string, path = '/get-session') =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}` }
      const sent = request(`${url}/api/auth${path}`, { agent, headers }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      sent.on('error', reject).end()
    })
  return { status, close: () => agent.destroy() }
}

test('once a sign-out, a ban, a removal or a change of the role has responded, every worker acts on it', async (t) => {
  const home = await createTemporaryHome()
  const controlUrl = await controlDatabase()
  const program = await startProgram(home.folder, {
    DATABASE_URL: controlUrl,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__WORKERS: '2',
    SERVICE_AUTH__PASSWORD__MEMORY: '1024',
    SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
  })
  const connections = Array.from({ length: 8 }, () => connection(program.url))
  t.after(async () => {
    for (const { close } of connections) close()
    await program.end('SIGTERM')
    await home.remove()
  })

  const anon = actor(program.url)
  await anon.post('/api/auth/sign-up/email', { name: 'Ada', email: 'ada@example.com', password: PASSWORD })
  for (let round = 0; round < 30; round++) {
    const { body } = await anon.post('/api/auth/sign-in/email', {
      email: 'ada@example.com',
      password: PASSWORD,
    })
    // Now every worker has the session in its cache.
    const before = await Promise.all(connections.map(({ status }) => status(body.token)))
    assert.deepEqual(new Set(before), new Set([200]))
    const signedOut = await anon.post(
      '/api/auth/sign-out',
      {},
      { headers: { authorization: `Bearer ${body.token}` } },
    )
    assert.equal(signedOut.status, 200)
    const after = await Promise.all(connections.map(({ status }) => status(body.token)))
    assert.deepEqual(new Set(after), new Set([401]), `round ${round}`)
  }

  const ofAdmin = { headers: { apikey: await adminKey(home.folder) } }
  // The sum of both workers. That of one which does not answer in time is missing.
  await until(async () => {
    const { text } = await anon.get('/metrics', ofAdmin)
    const counted =
      /gatehouse_http_requests_total\{[^}]*route="\/api\/auth\/get-session"[^}]*status="401"[^}]*\} (\d+)/.exec(
        text,
      )
    return counted?.[1] === '240'
  })
  await until(async () => {
    const { body } = await anon.get('/admin/activity', ofAdmin)
    return body.data.total.requests.auth['4xx'] >= 240
  })
  // Both ask at once, and the primary runs the checks.
  const findings = await Promise.all(connections.map(() => anon.get('/admin/doctor', ofAdmin)))
  for (const { body, status } of findings) {
    assert.equal(status, 200)
    const database = body.data.findings.find(({ subject }: { subject: string }) => subject === 'database')
    assert.equal(database?.ok, true)
  }

  const signUp = async (name: string) => {
    const { body } = await anon.post('/api/auth/sign-up/email', {
      ...{ name, email: `${name}@example.com`, password: PASSWORD },
    })
    const headers = { authorization: `Bearer ${body.token}` }
    return { ...actor(program.url, headers), token: body.token as string, id: body.user.id as string }
  }
  const everywhere = async (token: string, path?: string) => [
    ...new Set(await Promise.all(connections.map(({ status }) => status(token, path)))),
  ]
  const [root, bob, cem] = [await signUp('root'), await signUp('bob'), await signUp('cem')]
  await withClient(controlUrl, (client) =>
    client.query(`update service."user" set role = 'admin' where id = $1`, [root.id]),
  )
  const act = async (name: string, body: object) =>
    assert.equal((await root.post(`/api/auth/admin/${name}`, body)).status, 200)
  const LIST = '/admin/list-users?limit=1'
  const impersonation = await root.post('/api/auth/admin/impersonate-user', { userId: cem.id })
  for (let round = 0; round < 10; round++) {
    assert.deepEqual(await everywhere(bob.token, LIST), [403])
    await act('set-role', { userId: bob.id, role: 'admin' })
    assert.deepEqual(await everywhere(bob.token, LIST), [200])
    await act('set-role', { userId: bob.id, role: 'user' })
  }
  for (const [token, ends] of [
    [bob.token, () => act('ban-user', { userId: bob.id })],
    [impersonation.body.session.token, () => act('set-role', { userId: cem.id, role: 'admin' })],
    [cem.token, () => act('remove-user', { userId: cem.id })],
  ] as const) {
    assert.deepEqual(await everywhere(token), [200])
    await ends()
    assert.deepEqual(await everywhere(token), [401])
  }

  for (const pid of await childrenOf(program.child.pid ?? 0)) process.kill(pid, 'SIGKILL')
  const isServed = () =>
    fetch(`${program.url}/ping`).then(
      ({ ok }) => ok,
      () => false,
    )
  // Their replacements listen on the port that the first worker found.
  await until(isServed)
})

test('an unresponsive worker is replaced with growing delays while others serve; signals open no inspector', async (t) => {
  const home = await createTemporaryHome()
  const program = await startProgram(home.folder, {
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__WORKERS: '2',
    // Emits a warning like a library, once the log exists, and throws an uncaught exception.
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(
      `const look = setInterval(() => {
         if (process.listenerCount('SIGTERM') === 0) return
         clearInterval(look)
         process.emitWarning('something is odd')
       }, 100)
       look.unref()
       process.on('SIGUSR2', () => { throw new Error('something is wrong') })`,
    )}`,
  })
  t.after(async () => {
    await program.end('SIGTERM')
    await home.remove()
  })
  const workers = () => childrenOf(program.child.pid ?? 0)
  const [victim = 0, survivor = 0] = await workers()
  for (const pid of [program.child.pid ?? 0, victim, survivor]) process.kill(pid, 'SIGUSR1')

  process.kill(victim, 'SIGSTOP')
  // One of the connections is assigned to the frozen worker, and closed with it.
  const sent = Array.from({ length: 20 }, () =>
    fetch(`${program.url}/ping`, { headers: { connection: 'close' } }).then(
      ({ status }) => status,
      () => 'ended',
    ),
  )
  const headers = { apikey: await adminKey(home.folder) }
  await until(async () => {
    const { status, text } = await actor(program.url).get('/metrics', { headers })
    return status === 200 && /^gatehouse_http_requests_total\{.*\/ping/m.test(text)
  })
  await logged(program, /"event":"metrics_incomplete","missing":1/)

  await until(async () => !(await workers()).includes(victim))
  await logged(program, /"event":"worker_silent","pid":\d+/)
  const answers = await Promise.all(sent)
  assert.ok(answers.filter((answer) => answer === 200).length >= 19, answers.join(' '))

  const known = [victim, survivor]
  for (let lives = 0; lives < 2; lives++) {
    const replaced = await replacement(workers, known)
    process.kill(replaced, 'SIGKILL')
    known.push(replaced)
  }
  await replacement(workers, known)
  const delays = program
    .output()
    .matchAll(/"replaced_in_seconds":(\d+)/g)
    .map(([, seconds]) => Number(seconds))
  // On a busy machine, the first life may be longer than a minute, and does not count.
  const [first, second = Number.NaN, third] = delays
  assert.deepEqual([first, third], [1, 2 * second])

  assert.doesNotMatch(program.output(), /Debugger/)
  process.kill(survivor, 'SIGUSR2')
  await logged(program, /"event":"crashed".*something is wrong/)
  assert.equal(program.errors(), '')
  await logged(program, /"event":"runtime_warning".*something is odd/)
})

test('a worker that begins while another listens shares the port that the system has chosen', async (t) => {
  const home = await createTemporaryHome()
  const program = await startProgram(home.folder, {
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__WORKERS: '2',
  })
  t.after(async () => {
    await program.end('SIGTERM')
    await home.remove()
  })
  const workers = () => childrenOf(program.child.pid ?? 0)
  const headers = { apikey: await adminKey(home.folder) }
  const missed = () => program.output().split('metrics_incomplete').length
  const [victim = 0, survivor = 0] = await workers()
  process.kill(victim, 'SIGKILL')
  await replacement(workers, [victim, survivor])
  // Until the metrics are those of both.
  await until(async () => {
    const before = missed()
    const { status } = await actor(program.url).get('/metrics', { headers })
    return status === 200 && missed() === before
  })
  assert.equal(program.output().match(/"event":"worker_lost"/g)?.length, 1)
  assert.equal(program.errors(), '')
})

test('workers end quietly when the primary is killed while it hands a connection over', async (t) => {
  const home = await createTemporaryHome()
  const program = await startProgram(home.folder, {
    DATABASE_URL: await controlDatabase(),
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_SERVER__WORKERS: '2',
  })
  const pids = await childrenOf(program.child.pid ?? 0)
  t.after(async () => {
    for (const pid of pids.filter(isAlive)) process.kill(pid, 'SIGKILL')
    await program.end('SIGKILL')
    await home.remove()
  })
  for (const pid of pids) process.kill(pid, 'SIGSTOP')
  // Their acknowledgement will find nobody.
  const sent = pids.map(() => fetch(`${program.url}/ping`).catch(() => 'ended'))
  await sleep(500)
  await program.end('SIGKILL')
  for (const pid of pids) process.kill(pid, 'SIGCONT')
  await until(async () => !pids.some(isAlive))
  await Promise.all(sent)
  assert.doesNotMatch(program.output(), /crashed|EPIPE|"level":"error"/)
  assert.equal(program.errors(), '')
})

/** Waits for a worker process that is not in `known`. */
async function replacement(
  workers: () => Promise<readonly number[]>,
  known: readonly number[],
): Promise<number> {
  let found: number | undefined
  await until(async () => {
    found = (await workers()).find((pid) => !known.includes(pid))
    return found !== undefined
  })
  return found ?? assert.fail()
}

/** The output of a process arrives later than an answer that it was written before. */
const logged = (program: Program, line: RegExp) => until(async () => line.test(program.output()))

/** The test timeout ends it. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50)
}

async function adminKey(folder: string): Promise<string> {
  return (await readFile(`${folder}/data/admin-key`, 'utf8')).trim()
}
