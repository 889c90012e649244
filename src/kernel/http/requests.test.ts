import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { withClient } from '#test/database.ts'
import { type Answer, actor, BROWSER, testService } from '#test/harness.ts'
import { readiness } from '#test/readiness.ts'

const t = await testService()

/** The log's lines about requests, parsed. */
const requestLines = () => t.log.map((line) => JSON.parse(line)).filter(({ event }) => event === 'request')

test('a valid request id of the caller is kept and any other replaced; log and envelope have the same one', async () => {
  const ask = (id: string) => t.anon.get('/nowhere', { headers: { 'x-request-id': id } })
  for (const id of ['abc-123', 'A.b_c:d', 'x'.repeat(128), '01a1fbc3-db02-7c59-af72-2c9090a84d75']) {
    const { headers, body } = await ask(id)
    assert.deepEqual([headers.get('x-request-id'), body.request_id], [id, id])
    assert.equal(requestLines().at(-1)?.request_id, id)
  }
  for (const id of ['', ' ', 'a b', 'x'.repeat(129), '<b>', '"', 'a,b', 'é']) {
    const { headers, body } = await ask(id)
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/, id)
    assert.equal(body.request_id, headers.get('x-request-id'))
  }
})

test('each request has an id and one log line, with the pattern of its route and not its path', async () => {
  const before = requestLines().length
  const token = 'T'.repeat(43)
  const paths = [
    '/ping',
    `/api/auth/reset-password/${token}`,
    `/admin/api-keys/${token}`,
    `/nowhere/${token}?api_key=${token}`,
  ]
  const ids = (await Promise.all(paths.map((path) => t.anon.get(path)))).map(({ headers }) =>
    headers.get('x-request-id'),
  )
  assert.equal(new Set(ids).size, paths.length)
  const lines = requestLines().slice(before)
  assert.deepEqual(new Set(lines.map(({ request_id }) => request_id)), new Set(ids))
  assert.deepEqual(
    lines.map(({ method, route, status, surface }) => `${surface} ${method} ${route} ${status}`).toSorted(),
    [
      'auth GET /api/auth/reset-password/:token 400',
      'gateway GET /admin/api-keys/:id 401',
      'gateway GET /ping 200',
      'gateway GET unknown 404',
    ],
  )
  assert.ok(lines.every(({ duration_ms }) => typeof duration_ms === 'number'))
  assert.doesNotMatch(JSON.stringify(lines), new RegExp(token))
})

test('users that a caller names are logged with the request, if they are plain texts', async () => {
  const headers = {
    'x-user-id': 'ada@example.com',
    'x-organization-id': 'a b',
    'x-company-id': 'x'.repeat(129),
  }
  await t.anon.get('/ping', { headers })
  const { user_hint, organization_hint, company_hint } = requestLines().at(-1)
  assert.deepEqual([user_hint, organization_hint, company_hint], ['ada@example.com', undefined, undefined])
})

test('metrics count requests by route and status, measure their time, and contain no personal data', async () => {
  const ada = await t.signUp('Ada')
  for (let round = 0; round < 3; round++) await ada.get('/api/auth/get-session')
  await t.anon.get('/api/auth/get-session')
  await t.anon.get('/some/where')
  const { text, headers } = await t.admin.get('/metrics')
  assert.match(headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  const value = (line: string) =>
    Number(
      text
        .split('\n')
        .find((one) => one.startsWith(`${line} `))
        ?.split(' ')
        .at(-1),
    )
  const counted = (route: string, status: number, surface: string) =>
    value(
      `gatehouse_http_requests_total{surface="${surface}",route="${route}",method="GET",status="${status}"}`,
    )
  assert.equal(counted('/api/auth/get-session', 200, 'auth'), 3)
  assert.equal(counted('/api/auth/get-session', 401, 'auth'), 1)
  assert.ok(counted('unknown', 404, 'gateway') >= 1)
  const latency = 'surface="auth",route="/api/auth/get-session",method="GET"'
  assert.equal(value(`gatehouse_http_request_duration_seconds_count{${latency}}`), 4)
  assert.equal(value(`gatehouse_http_request_duration_seconds_bucket{le="+Inf",${latency}}`), 4)
  assert.equal(value('gatehouse_events_total{event="auth_user_created"}'), 1)
  assert.equal(value('gatehouse_password_hashes_waiting'), 0)
  for (const state of ['idle', 'busy', 'waiting'])
    assert.ok(value(`gatehouse_control_connections{state="${state}"}`) >= 0, state)
  assert.ok(value('gatehouse_client_connections{client="default",state="idle"}') >= 0)
  assert.ok(value('gatehouse_jobs_waiting{queue="send-mail"}') >= 0)
  assert.ok(value('nodejs_eventloop_lag_seconds') >= 0)
  assert.ok(!text.includes(ada.email) && !text.includes(ada.token) && !text.includes('/some/where'))
})

/** The answer with this status, or the last one: a check that a busy machine does not answer within two seconds counts as failed. */
async function health(): Promise<Answer> {
  let answer = await t.admin.get('/health')
  for (let tries = 1; tries < 10 && answer.body.status !== 'ok'; tries++)
    answer = await t.admin.get('/health')
  return answer
}

test('both surfaces answer their name and that they are alive', async () => {
  const root = await t.anon.get('/')
  assert.deepEqual([root.status, root.body.name], [200, 'Gatehouse'])
  assert.ok(root.body.routes.includes('POST /api/auth/sign-in/email'))
  assert.deepEqual(
    [(await t.anon.get('/ping')).text, (await t.anon.get('/api/auth/ok')).body],
    ['pong', { ok: true }],
  )
  const { status, body } = await health()
  assert.deepEqual([status, body.status, body.version], [200, 'ok', root.body.version])
  assert.match(body.versions.postgresql, /^\d+/)
  assert.ok(Math.abs(body.clock_drift_ms) < 5_000)
  assert.deepEqual(
    body.components.map(({ name, status }: { name: string; status: string }) => `${name} ${status}`).sort(),
    ['client:default online', 'client:logging online', 'control_database online'],
  )
  const ready = await readiness(t.anon)
  assert.deepEqual(ready.body, { status: 'ready', problems: [] })
})

test('a browser gets a page at the root, and a program that accepts JSON does not', async () => {
  const t = await testService({ config: { console: { enabled: false } } })
  const page = await t.anon.get('/', { headers: BROWSER })
  assert.equal(page.status, 200)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(page.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.equal(page.headers.get('vary')?.includes('Accept'), true)
  assert.match(page.text, /<h1>The service is running<\/h1>/)
  for (const [, href = ''] of page.text.matchAll(/href="([^"]+)"/g))
    assert.equal((await t.anon.get(href)).status, 200, href)
  const json = await t.anon.get('/', { headers: { accept: 'application/json' } })
  assert.equal(json.body.name, 'Gatehouse')
  assert.equal((await t.anon.send('HEAD', '/', { headers: BROWSER })).status, 200)
})

test('a value that is none of those allowed is refused with all of them', async () => {
  const jobs = await t.admin.get('/admin/backups/jobs?status=done')
  assert.match(
    jobs.body.message,
    /^status must be one of pending, running, completed, failed, cancelled, foreign$/,
  )
  const route = { route_key: 'a', client_name: 'default', table_name: 'a', allowed_ops: ['fetch', 'select'] }
  const created = await t.admin.post('/admin/public-routes', route)
  assert.equal(
    created.body.message,
    'allowed_ops.1 must be one of query, fetch, insert, update, delete, subscribe',
  )
})

test('an unknown path is 404, and another method 405 with the allowed ones, in the envelope of each surface', async () => {
  const auth = await t.anon.get('/api/auth/nowhere')
  assert.deepEqual(
    [auth.status, auth.body],
    [404, { message: 'There is nothing at this address', code: 'NOT_FOUND' }],
  )
  const gateway = await t.anon.get('/nowhere')
  assert.deepEqual([gateway.status, gateway.body.code, gateway.body.status], [404, 'not_found', 'error'])
  assert.equal(gateway.body.error, 'GET / lists the addresses of this service')
  const wrong = await t.anon.send('PUT', '/api/auth/get-session')
  assert.deepEqual(
    [wrong.status, wrong.body.code, wrong.headers.get('allow')],
    [405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST'],
  )
  const other = await t.anon.send('DELETE', '/ping')
  assert.deepEqual(
    [other.status, other.body.code, other.body.error, other.headers.get('allow')],
    [405, 'method_not_allowed', 'It takes GET, HEAD', 'GET, HEAD'],
  )
  const named = await t.admin.send('DELETE', '/admin/webhooks/events')
  assert.deepEqual(
    [named.status, named.body.code, named.headers.get('allow')],
    [405, 'method_not_allowed', 'GET, HEAD'],
  )
  for (const path of ['/api/auth', '/api/authentic', '/api/auth//ok', '/API/AUTH/ok', '/api/auth/ok/']) {
    assert.equal((await t.anon.get(path)).status, 404, path)
  }
})

test('every answer has the security headers, and HSTS only if the public URL is https', async () => {
  const behindTls = await testService({ config: { server: { public_url: 'https://gate.example' } } })
  for (const path of ['/ping', '/nothing', '/api/auth/ok', '/api/auth/nothing', '/docs']) {
    const plain = await t.anon.get(path)
    assert.equal(plain.headers.get('x-content-type-options'), 'nosniff', path)
    assert.match(plain.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, path)
    assert.equal(plain.headers.get('strict-transport-security'), null, path)
    const secure = await behindTls.anon.get(path)
    assert.equal(secure.headers.get('strict-transport-security'), 'max-age=31536000', path)
  }
})

test('the API reference is served unless it is switched off, which is the default in production', async () => {
  const paths = ['/docs', '/openapi.json', '/docs/start.js', '/docs/swagger-ui.css']
  const statuses = async ({ anon }: Pick<typeof t, 'anon'>) =>
    Promise.all(paths.map(async (path) => (await anon.get(path)).status))
  assert.deepEqual(await statuses(t), [200, 200, 200, 200])
  const off = await testService({ config: { docs: { enabled: false } } })
  assert.deepEqual(await statuses(off), [404, 404, 404, 404])
  assert.ok((await off.anon.get('/')).body.routes.every((route: string) => !/docs|openapi/.test(route)))
  assert.deepEqual(
    [defaultConfig().docs.enabled, defaultConfig({ production: true }).docs.enabled],
    [true, false],
  )
})

test('the document is compressed for those who take that, and is the same', async () => {
  const read = async (accepted: string) => {
    const answer = await fetch(`${t.url}/openapi.json`, { headers: { 'accept-encoding': accepted } })
    return { encoding: answer.headers.get('content-encoding'), text: await answer.text() }
  }
  const plain = await read('identity')
  assert.equal(plain.encoding, null)
  for (const [accepted, encoding] of [
    ['br, gzip', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0', null],
  ] as const)
    assert.deepEqual(await read(accepted), { encoding, text: plain.text }, accepted)
})

test('a request that takes too long is answered with 504, with a body and without', async () => {
  const hasty = await testService({ config: { limits: { timeout: 500 } } })
  const reader = await hasty.key(['*'])
  await withClient(hasty.clientUrl, (client) =>
    client.query('create view slow as select 1 as id from pg_sleep(20)'),
  )
  const answers = await Promise.all([
    reader.get('/data?view=slow&eq_column=id&eq_value=1'),
    reader.post('/gateway/fetch', { table_name: 'slow' }),
  ])
  for (const { status, body } of answers) assert.deepEqual([status, body.code], [504, 'timeout'])
})

test('an error whose code is a number is an internal error like any other', async () => {
  const broken = await testService()
  const cause = new DOMException('inside', 'DataError')
  Object.assign(broken.service.kernel.limits, { expectRoom: () => Promise.reject(cause) })
  const authorization = `Bearer ${'x'.repeat(43)}`
  const { status, body, text } = await actor(broken.url, { authorization }).get('/api/auth/get-session')
  assert.deepEqual([status, body.code], [500, 'INTERNAL_ERROR'], text)
  const [line] = broken.log.map((one) => JSON.parse(one)).filter(({ event }) => event === 'request_failed')
  assert.equal(line?.error.message, 'inside')
})
