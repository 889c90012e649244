import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { banByOperator, setRoleByOperator, unbanByOperator } from '#auth/admin/operator.ts'
import { authSurface } from '#auth/surface.ts'
import { createJwtKeys } from '#identity/jwt/key-ring.ts'
import { createSessions } from '#identity/live-sessions.ts'
import { createServer } from '#kernel/http/server.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { createMetrics } from '#kernel/metrics.ts'
import { bytesFor, getBy, isFast, statusesIn, watchPaths } from '#test/fast-path.ts'
import { testKernel, testService, type User } from '#test/harness.ts'

const AUTH = '/api/auth'
const PATH = `${AUTH}/get-session`
const DAY = 86_400_000
const MINUTE = 60_000

const t = await testService()
/** Another process on the same database. */
const elsewhere = await testKernel({ controlUrl: t.controlUrl })
const paths = watchPaths(t)

/** A user whose get-session is repeated from now on. */
async function repeatedUser(name: string): Promise<User> {
  const user = await t.signUp(name)
  await expectRepeated(user)
  return user
}
/** The first answer reads the session, the second one is kept. */
async function expectRepeated(user: User): Promise<void> {
  for (let round = 0; round < 2; round++) await user.get(PATH)
  assert.ok(await isFast(t, paths, getBy(user.token)))
}
const sessionOf = async (user: User) => {
  const { status, body, text } = await user.get(PATH)
  assert.equal(status, 200, text)
  return body
}

test('a session that has ended is refused at once, whoever has ended it', async () => {
  const signedOut = await repeatedUser('Ada')
  await signedOut.post(`${AUTH}/sign-out`)
  assert.equal((await signedOut.get(PATH)).status, 401)
  const banned = await repeatedUser('Bob')
  await banByOperator(elsewhere, banned.id, { reason: null, expires: null })
  assert.equal((await banned.get(PATH)).status, 401)
  await unbanByOperator(elsewhere, banned.id)
  assert.equal((await banned.get(PATH)).status, 401)
  const expired = await repeatedUser('Eve')
  t.advance(30 * DAY)
  assert.equal((await expired.get(PATH)).status, 401)
})

test('what has changed in user or session is in the next answer, which is repeated from then on', async () => {
  const ada = await repeatedUser('Ada')
  await ada.post(`${AUTH}/update-user`, { name: 'Ada L.' })
  assert.equal((await sessionOf(ada)).user.name, 'Ada L.')
  await setRoleByOperator(elsewhere, ada.id, 'admin')
  assert.equal((await sessionOf(ada)).user.role, 'admin')
  const { id } = (await ada.post(`${AUTH}/organization/create`, { name: 'Acme', slug: 'acme-fast' })).body
  assert.equal((await sessionOf(ada)).session.activeOrganizationId, id)
  await expectRepeated(ada)
})

test('a session that is due to be extended is extended, and repeated with its new end', async () => {
  const ada = await repeatedUser('Ada')
  const before = (await sessionOf(ada)).session.expiresAt
  t.advance(DAY + MINUTE)
  const after = (await sessionOf(ada)).session.expiresAt
  assert.ok(Date.parse(after) > Date.parse(before))
  await expectRepeated(ada)
  assert.equal((await sessionOf(ada)).session.expiresAt, after)
})

test('nothing is repeated while the process cannot trust its memory', async () => {
  const ada = await repeatedUser('Ada')
  const trusted = mock.method(t.service.kernel.coherence, 'isTrusted', () => false)
  try {
    assert.equal(await isFast(t, paths, getBy(ada.token)), false)
  } finally {
    trusted.mock.restore()
  }
  await expectRepeated(ada)
})

test('an answer that cannot be looked for in memory is given through Fastify', async () => {
  const ada = await repeatedUser('Ada')
  const broken = () => {
    throw new Error('broken')
  }
  mock.method(t.service.kernel.coherence, 'isTrusted', broken, { times: 1 })
  const before = paths.slow()
  assert.deepEqual(statusesIn(await bytesFor(t, getBy(ada.token))), [200, 200])
  assert.equal(paths.slow(), before + 2)
  assert.ok(t.log.some((line) => line.includes('fast_path_failed')))
  await expectRepeated(ada)
})

test('a repeated answer has a new id, one line in the log and one measurement, as the first one', async () => {
  const ada = await t.signUp('Ada')
  const line = (id: string | null) => {
    const { time, duration_ms, request_id, ...rest } = JSON.parse(
      t.log.find((one) => one.includes(`"${id}"`)) ?? '{}',
    )
    assert.equal(typeof duration_ms, 'number')
    return rest
  }
  const counted = async () => {
    const { text } = await t.admin.get('/metrics')
    const labels = `surface="auth",route="${PATH}",method="GET"`
    const figure = (name: string) =>
      Number(
        text
          .split('\n')
          .find((one) => one.startsWith(name))
          ?.split(' ')
          .at(-1),
      )
    return [
      figure(`gatehouse_http_requests_total{${labels},status="200"}`),
      figure(`gatehouse_http_request_duration_seconds_count{${labels}}`),
    ]
  }
  const ids = new Set<string | null>()
  await ada.get(PATH)
  const before = await counted()
  for (let round = 0; round < 3; round++) ids.add((await ada.get(PATH)).headers.get('x-request-id'))
  assert.deepEqual(
    await counted(),
    before.map((count) => count + 3),
  )
  const [first, ...others] = [...ids].map(line)
  assert.deepEqual(others, [first, first])
  assert.equal(first.route, PATH)
})

test('on a connection with another request, every request goes through Fastify, in order', async () => {
  const ada = await repeatedUser('Ada')
  const before = paths.slow()
  const bytes = await bytesFor(t, getBy(ada.token).repeat(3))
  assert.deepEqual(statusesIn(bytes), [200, 200, 200, 200])
  // The first is repeated; the others, and the last of the connection, are not.
  assert.equal(paths.slow(), before + 3)
})

test('while the service drains, the answer is the last one on its connection', async () => {
  const service = await testService()
  const ada = await service.signUp('Ada')
  const watched = watchPaths(service)
  for (let round = 0; round < 2; round++) await ada.get(PATH)
  assert.ok(await isFast(service, watched, getBy(ada.token)))
  service.service.app.drain()
  const bytes = await bytesFor(service, getBy(ada.token))
  assert.match(bytes, /^connection: close\r$/im)
  assert.deepEqual(statusesIn(bytes), [200])
})

/** Answers by the surface with something added to it; `passed` counts what has reached that. */
async function withHook(add: (app: App, pass: () => void) => void) {
  const { kernel } = t.service
  const log: string[] = []
  const destination = { write: (line: string) => void log.push(line) }
  const other: Kernel = {
    ...kernel,
    metrics: createMetrics(kernel.now),
    log: createLog({ level: 'warn', format: 'json', destination }),
  }
  let passed = 0
  const { app, book } = createServer(other)
  const parts = { sessions: createSessions(other), jwtKeys: createJwtKeys(other) }
  app.register(async (auth: App) => authSurface(auth, other, book, parts), { prefix: AUTH })
  add(app, () => void passed++)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  return { app, log, passed: () => passed, get: (token: string) => bytesFor({ url }, getBy(token)) }
}

const ADDED: Readonly<Record<string, (app: App, pass: () => void) => void>> = {
  'in front of all': (app, pass) => app.addHook('onRequest', async () => pass()),
  'with a name': (app, pass) =>
    app.addHook('preHandler', async function audit() {
      pass()
    }),
  'behind the answer': (app, pass) => app.addHook('onResponse', async () => pass()),
  'of a plugin': (app, pass) =>
    app.register(
      Object.assign(async (part: App) => void part.addHook('onSend', async () => pass()), {
        [Symbol.for('skip-override')]: true,
      }),
    ),
  'of the route': (app, pass) =>
    app.addHook('onRoute', (route) => {
      route.preHandler = async () => pass()
    }),
}

for (const [where, add] of Object.entries(ADDED))
  test(`a hook that is added runs for each get-session: ${where}`, async () => {
    const ada = await repeatedUser('Ada')
    const { app, log, get, passed } = await withHook(add)
    try {
      for (let round = 0; round < 2; round++) await get(ada.token)
      const before = passed()
      for (let round = 0; round < 3; round++) assert.match(await get(ada.token), /^HTTP\/1\.1 200 /)
      // Each connection has a last request, to which the hook belongs as well.
      assert.equal(passed() - before, 6)
      assert.match(log.join(''), /"fast_path_off"/)
    } finally {
      await app.close()
    }
  })

test('without one it is repeated there, too', async () => {
  const ada = await repeatedUser('Ada')
  const { app, log, get } = await withHook(() => {})
  const routing = mock.method(app, 'routing')
  try {
    for (let round = 0; round < 3; round++) await get(ada.token)
    // The first two answers, and the last one of each connection.
    assert.equal(routing.mock.callCount(), 5)
    assert.deepEqual(log, [])
  } finally {
    await app.close()
  }
})
