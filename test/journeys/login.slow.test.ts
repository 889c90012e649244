import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { approve, deny } from '#test/devices.ts'
import { testService } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { runHere } from './command.ts'
import { spawnCommand } from './program.ts'

const SECOND = 1_000
const device = { interval: SECOND, clients: { gatehouse: { name: 'Command line' } } }
const t = await testService({ config: { auth: { device } } })
const closed = await testService()
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-login-'))
after(() => removeFolder(folder))

const file = path.join(folder, 'settings/gatehouse/sessions.json')
const env = { XDG_CONFIG_HOME: path.join(folder, 'settings') }
const run = (...args: string[]) => runHere(folder, args, env)
const kept = async () => JSON.parse(await readFile(file, 'utf8')).sessions
const modeOf = async (name: string) => ((await stat(name)).mode & 0o777).toString(8)

/** Runs `gatehouse login`, and lets a user answer as soon as it shows its code. */
async function login(answer: (asked: { userCode: string }) => Promise<unknown>) {
  const child = spawnCommand(folder, ['login', t.url], env)
  const printed = text(child.stdout)
  let errors = ''
  let answered: Promise<unknown> | undefined
  child.stderr.on('data', (chunk) => {
    errors += chunk
    const [, userCode] = /if it shows the code ([A-Z]{4}-[A-Z]{4})\.\n/.exec(errors) ?? []
    if (userCode !== undefined) answered ??= answer({ userCode })
  })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  await answered
  return { code, stdout: await printed, stderr: errors }
}

test('login, whoami and logout: a session for a service elsewhere, in a file that only its user reads', async () => {
  const ada = await t.signUp('Ada')
  const { code, stdout, stderr } = await login((asked) => approve(ada, asked))
  assert.deepEqual([code, stdout], [0, `Signed in to ${t.url} as ${ada.email}.\n`], stderr)
  const page = `${t.service.kernel.publicUrl()}/api/auth/device?user_code=`
  assert.ok(stderr.includes(`Open ${page}`), stderr)
  assert.deepEqual([await modeOf(file), await modeOf(path.dirname(file))], ['600', '700'])
  const [session] = await kept()
  assert.equal(session.service, t.url)
  assert.ok(!`${stdout}${stderr}`.includes(session.token), 'the token is not shown')

  const shown = await run('whoami')
  assert.match(shown.stdout, new RegExp(`^${ada.email} at ${t.url}, with the role user\\. `))
  const json = JSON.parse((await run('whoami', t.url, '--json')).stdout)
  assert.deepEqual([json.service, json.user.id], [t.url, ada.id])
  const listed = await ada.get('/api/auth/list-sessions')
  const agents = listed.body.map(({ userAgent }: { userAgent: string }) => userAgent)
  assert.match(agents.join(), /gatehouse\/\d/)

  const out = await run('logout')
  assert.deepEqual([out.code, out.stdout], [0, `Signed out of ${t.url}.\n`])
  assert.deepEqual(await kept(), [])
  assert.equal((await ada.get('/api/auth/list-sessions')).body.length, 1)
  const nobody = await run('whoami')
  assert.deepEqual([nobody.code, nobody.stdout], [1, ''])
  assert.match(nobody.stderr, /^There is no session: run gatehouse login SERVICE\.\n$/)
})

test('a second login takes the place of the first, whose session ends; a file that others may read is replaced', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  await mkdir(path.dirname(file), { recursive: true })
  const elsewhere = {
    service: 'https://api.example.com',
    authUrl: 'https://api.example.com/api/auth',
    token: 'x',
  }
  await writeFile(file, JSON.stringify({ sessions: [elsewhere] }), { mode: 0o644 })
  assert.equal((await login((asked) => approve(ada, asked))).code, 0)
  assert.equal((await login((asked) => approve(bob, asked))).code, 0)
  assert.deepEqual(
    (await kept()).map(({ service }: { service: string }) => service),
    [t.url, elsewhere.service],
  )
  assert.equal(await modeOf(file), '600')
  assert.deepEqual(await readdir(path.dirname(file)), ['sessions.json'])
  assert.equal((await ada.get('/api/auth/list-sessions')).body.length, 1)

  // Ended elsewhere.
  await bob.post('/api/auth/revoke-other-sessions')
  const ended = await run('whoami', t.url)
  assert.equal(ended.code, 1)
  assert.match(ended.stderr, /has ended: run gatehouse login/)
  assert.deepEqual(await kept(), [elsewhere])
})

test('a login that is refused, or that the service does not take, says so and keeps nothing', async () => {
  const ada = await t.signUp('Ada')
  const before = await readFile(file, 'utf8')
  const refused = await login((asked) => deny(ada, asked))
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /The sign-in was refused in the browser\.\n$/)
  const unknown = await run('login', closed.url)
  assert.equal(unknown.code, 1)
  assert.match(
    unknown.stderr,
    /^http:\/\/127\.0\.0\.1:\d+ takes no gatehouse login: .*auth\.device\.clients\.gatehouse/,
  )
  const elsewhere = await run('login', t.url, '--auth-path', '/nowhere')
  assert.match(elsewhere.stderr, /answers 404: it is no Gatehouse, or has another auth\.base_path\.\n$/)
  assert.equal((await run('login', t.url, '--auth-path', '//evil.example')).code, 2)
  const gone = await run('login', 'http://127.0.0.1:1')
  assert.match(gone.stderr, /^http:\/\/127\.0\.0\.1:1 cannot be reached: .*ECONNREFUSED/)
  assert.equal(await readFile(file, 'utf8'), before)
  assert.equal((await ada.get('/api/auth/list-sessions')).body.length, 1)
})

test('a session that cannot be kept is signed out again', async () => {
  const ada = await t.signUp('Ada')
  await writeFile(file, 'not of ours')
  const { code, stderr } = await login((asked) => approve(ada, asked))
  assert.equal(code, 1)
  assert.match(stderr, /sessions\.json was not written by gatehouse login: move it away/)
  assert.equal((await ada.get('/api/auth/list-sessions')).body.length, 1)
  await writeFile(file, '{ "sessions": [] }')
})

test('login waits as it is told: longer after slow_down, and longer while the service cannot be reached', async () => {
  const answers = [
    [400, { error: 'authorization_pending' }],
    [503, {}],
    [400, { error: 'authorization_pending' }],
    [200, { access_token: 'A'.repeat(43) }],
  ] as const
  const polls: number[] = []
  const server = createServer((request, response) => {
    const send = (status: number, body: object) =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    request.resume()
    if (request.url === '/api/auth/device/code')
      return send(200, {
        ...{ device_code: 'device', user_code: 'BBBB-BBBB', expires_in: 60, interval: 1 },
        verification_uri_complete: 'http://localhost/device\u001b[31m',
      })
    if (request.url === '/api/auth/get-session') return send(200, { user: { email: 'ada@example.com' } })
    polls.push(performance.now())
    const [status, body] = answers[polls.length - 1] ?? [400, { error: 'access_denied' }]
    send(status, body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  const { port } = server.address() as AddressInfo
  const { code, stderr } = await run('login', `http://127.0.0.1:${port}`)
  assert.equal(code, 0, stderr)
  assert.match(stderr, /\\u001b\[31m/, 'no text of the service controls the terminal')
  const waits = polls.slice(1).map((at, index) => at - (polls[index] ?? 0))
  // A busy machine asks later, but never earlier. An interval of its own, or a wait that is doubled again, would take longer than the bounds.
  const bounds = [
    [1, 5],
    [2, 4],
    [2, 4],
  ].map(([least = 0, most = 0]) => [least * SECOND - 5, most * SECOND] as const)
  assert.deepEqual(
    waits.map((wait, index) => bounds[index]?.every((bound, end) => wait > bound === (end === 0))),
    [true, true, true],
    `${waits.map(Math.round)} ms`,
  )
})
