import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_KEY, testService } from '#test/harness.ts'

const TOKEN = 'token-of-the-scraper'
const FEW = 3
const t = await testService({
  config: {
    metrics: { token: TOKEN },
    rate_limits: { enabled: true, rules: { admin_key: { requests: FEW, window: 60_000 } } },
    server: { trusted_proxies: ['127.0.0.0/8'] },
  },
})
const key = await t.key(['*'])

let addresses = 0
/** A caller with its own client address. */
function newcomer() {
  const from = `198.51.100.${++addresses}`
  return async (method: string, path: string, headers: Record<string, string>) => {
    const { status } = await t.anon.send(method, path, {
      headers: { 'x-service-client': 'default', 'x-forwarded-for': from, ...headers },
      ...(method === 'GET' ? {} : { body: {} }),
    })
    return status
  }
}

const wrong = (header: string, round: number): Record<string, string> =>
  header === 'authorization' ? { authorization: `Bearer guess-${round}` } : { [header]: `guess-${round}` }
const right = (header: string): Record<string, string> =>
  header === 'authorization' ? { authorization: `Bearer ${ADMIN_KEY}` } : { [header]: ADMIN_KEY }

test('wrong admin keys are rate limited by address on every route that accepts the key', async () => {
  const routes = t.service.book
    .entries()
    .filter(({ surface, access }) => surface === 'gateway' && !access.startsWith('open'))
    .filter(({ path }) => path !== '/admin/clients/{name}/freeze')
    // A key is looked at when there is such a route.
    .filter(({ path }) => !path.startsWith('/public/'))
    // Its ticket says who calls.
    .filter(({ method, path }) => method !== 'GET' || path !== '/realtime')
  assert.ok(routes.length > 30)
  for (const { method, path } of routes) {
    const ask = newcomer()
    const url = path.replace(/\{\w+\}/g, 'x')
    for (let round = 0; round < FEW; round++)
      assert.equal(await ask(method, url, wrong('apikey', round)), 401, `${method} ${path}`)
    assert.equal(await ask(method, url, wrong('apikey', FEW)), 429, `${method} ${path}`)
  }
})

test('the limit counts all routes together, and above it even the correct key is rejected', async () => {
  const places = ['x-service-admin-key', 'apikey', 'x-api-key', 'x-service-key', 'authorization']
  const ask = newcomer()
  const first = ['/metrics', '/health', '/clients']
  for (const [round, path] of first.entries())
    assert.equal(await ask('GET', path, wrong(places[round] ?? '', round)), 401, path)
  for (const place of places) {
    assert.equal(await ask('GET', '/clients', wrong(place, 9)), 429, place)
    assert.equal(await ask('GET', '/clients', right(place)), 429, `${place}, right`)
    assert.equal(await newcomer()('GET', '/clients', right(place)), 200, `${place}, elsewhere`)
  }
  assert.equal(await ask('GET', '/metrics', { authorization: `Bearer ${TOKEN}` }), 429)
  assert.equal(await newcomer()('GET', '/metrics', { authorization: `Bearer ${TOKEN}` }), 200)
  assert.equal(await ask('GET', '/health', {}), 200, 'a request without a key was rejected')
  assert.equal(
    await ask('POST', '/gateway/fetch', { apikey: key.apiKey }),
    400,
    "a request with a client's key was rejected",
  )
})

test("correct keys and clients' keys do not count towards the limit", async () => {
  const ask = newcomer()
  const unknown = `svc_${'0'.repeat(16)}.${'A'.repeat(43)}`
  for (let round = 0; round < 2 * FEW; round++) {
    assert.equal(await ask('GET', '/clients', right('apikey')), 200)
    assert.equal(await ask('POST', '/gateway/fetch', { apikey: unknown }), 401)
    assert.equal(await ask('GET', '/health', { apikey: key.apiKey }), 200)
    const beside = { apikey: key.apiKey, authorization: `Bearer ${'A'.repeat(43)}` }
    assert.equal(await ask('POST', '/gateway/fetch', beside), 400)
  }
})

test('/health shows only the status to anonymous callers, and all components to operators', async () => {
  const health = async (headers: Record<string, string>) => (await t.anon.get('/health', { headers })).body
  for (const headers of [{}, { apikey: key.apiKey }, { 'x-service-client': 'default' }])
    assert.deepEqual(await health(headers), { status: 'ok' })
  for (const headers of [
    right('apikey'),
    right('x-service-admin-key'),
    right('authorization'),
    { authorization: `Bearer ${TOKEN}` },
  ]) {
    const { status, components, versions, clock_drift_ms } = await health(headers)
    assert.deepEqual(
      [status, components.length, Object.keys(versions)],
      ['ok', 3, ['gatehouse', 'node', 'postgresql']],
    )
    assert.equal(typeof clock_drift_ms, 'number')
  }
})
