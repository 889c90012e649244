import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { hostFits, hostPatternForm } from '#kernel/config/addresses.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { type Actor, type Answer, actor, testService } from '#test/harness.ts'
import { startPostgrestEndpoint } from '#test/postgrest/endpoint.ts'

const database = await testDatabase()
const endpoint = await startPostgrestEndpoint(database.url)
await withClient(database.url, (client) =>
  client.query(`create table note (id int primary key, text text); insert into note values (1, 'one');
    create table secret (id int primary key)`),
)
/** A server that must never receive a request. */
const trapped: string[] = []
const trap = createServer((request, response) => {
  trapped.push(`${request.method} ${request.url}`)
  response.end('[]')
})
await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
const { port: trapPort } = trap.address() as AddressInfo // the address of a TCP server
after(async () => {
  await endpoint.close()
  trap.close()
})
const { host } = new URL(endpoint.url)
const project = `http://${host}`

const loopback = { allow_http: true, allow_networks: ['127.0.0.0/8', '::1'] }
const t = await testService({
  config: {
    gateway: { custom_supabase: { allowed_hosts: [host, '*.allowed.example'] }, cache: { ttl: 60_000 } },
    outbound: loopback,
  },
})
after(() =>
  assert.doesNotMatch(t.log.join('\n'), new RegExp(`${endpoint.key}|wrong-key`), 'the log contains a key'),
)
beforeEach(() => {
  endpoint.intercept = undefined
})

const refusal = ({ status, body }: Answer) => [status, body.code]
const on = (who: Actor, more: Record<string, string> = {}, service = t): Actor =>
  actor(service.url, {
    ...who.headers,
    'x-service-client': 'custom_supabase',
    'x-supabase-url': project,
    'x-supabase-key': endpoint.key,
    ...more,
  })
const key = await t.key(['note.*'], { client_name: 'custom_supabase' })
const notes = { table_name: 'note' }

test('a request names its project in headers, and the rights of its API key apply there', async () => {
  const own = on(key)
  const read = await own.post('/gateway/fetch', notes)
  assert.deepEqual(read.body.data, [{ id: 1, text: 'one' }], read.text)
  const byAddress = await own.get('/data?view=note&eq_column=id&eq_value=1')
  assert.deepEqual(byAddress.body.data, [{ id: 1, text: 'one' }])
  const written = await own.post('/gateway/insert', { ...notes, insert_body: { id: 2, text: 'two' } })
  assert.equal(written.body.affected_rows, 1)
  await own.post('/gateway/delete', { ...notes, resource_id: 2 })
  assert.deepEqual(refusal(await own.post('/gateway/fetch', { table_name: 'secret' })), [
    403,
    'insufficient_rights',
  ])
  for (const path of ['', '/', '/rest/v1', '/rest/v1/'])
    assert.equal(
      (await on(key, { 'x-supabase-url': project + path }).post('/gateway/fetch', notes)).status,
      200,
    )
})

test('a project is reached while some other database is restored', async () => {
  const job = (text: string) => withClient(t.controlUrl, (client) => client.query(text))
  await job(`insert into service.backup_job (id, job_type, status, client_name, database, format, created_at, updated_at, lease_until)
    values (gen_random_uuid(), 'restore', 'pending', 'other', '1/2', 'dump', now(), now(), 'tomorrow'); update service.backup_job set status = 'running'`)
  await t.service.kernel.coherence.settle()
  assert.equal((await on(key).post('/gateway/fetch', notes)).status, 200)
  await job('delete from service.backup_job')
})

test('checks run in this order: API key, headers, binding of the key', async () => {
  const before = endpoint.asked.length
  const anonymous = on(t.anon, { 'x-supabase-url': 'nonsense' })
  assert.deepEqual(refusal(await anonymous.post('/gateway/fetch', notes)), [401, 'api_key_required'])
  const other = await t.key(['*'], { client_name: 'default' })
  assert.deepEqual(refusal(await on(other).post('/gateway/fetch', notes)), [403, 'api_key_client_mismatch'])
  for (const [more, missing] of [
    [{ 'x-supabase-url': '' }, ['x-supabase-url']],
    [{ 'x-supabase-key': '' }, ['x-supabase-key']],
    [{ 'x-supabase-url': '', 'x-supabase-key': '' }, ['x-supabase-url', 'x-supabase-key']],
  ] as const) {
    const answer = await on(other, more).post('/gateway/fetch', notes)
    assert.deepEqual(refusal(answer), [400, 'missing_project_header'])
    assert.deepEqual(answer.body.data.details.missing_headers, missing)
    for (const name of missing) assert.ok(answer.body.message.includes(name))
  }
  assert.equal(endpoint.asked.length, before)
})

test('a URL that is not exactly an allowed host is rejected without sending a request', async () => {
  const { port } = new URL(project)
  const before = endpoint.asked.length
  const addresses = [
    `http://127.0.0.1:${trapPort}`,
    `http://user@${host}`,
    `http://:password@${host}`,
    `http://${host}@127.0.0.1:${trapPort}`,
    `http://127.0.0.1:${trapPort}#@${host}`,
    `http://127.0.0.1:${trapPort}?${host}`,
    `http://127.0.0.1:${trapPort}\\@${host}`,
    `http://127.0.0.1:${trapPort}\\.allowed.example`,
    `http:\\\\${host}`,
    `http://${host}/../../`,
    `http://${host}/rest/v1/note`,
    `http://${host}/rest/v1/../../admin`,
    `http://${host}/%2e%2e/`,
    `http://${host}?select=*`,
    `http://${host}#x`,
    `http://${host}.`,
    `http://127.0.0.1.:${port}`,
    `http://127.1:${port}`,
    `http://2130706433:${port}`,
    `http://0x7f000001:${port}`,
    `http://0177.0.0.1:${port}`,
    `http://[::1]:${port}`,
    `http://[::ffff:127.0.0.1]:${port}`,
    `http://localhost:${port}`,
    `http://127.0.0.1%00:${port}`,
    `http://127。0。0。1:${port}`,
    'http://allowed.example',
    'http://x.y.allowed.example',
    'http://.allowed.example',
    'http://xallowed.example',
    'http://x.allowed.example.evil.example',
    'http://x.allowed.example.',
    `http://x.allowed.example:${trapPort}`,
    'http://x_y.allowed.example',
    'http://ｘ.allowed.example',
    'ftp://x.allowed.example',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'x.allowed.example',
    '//x.allowed.example',
    ` http://${host} http://127.0.0.1:${trapPort}`,
  ]
  for (const address of addresses) {
    // Header values are Latin-1 for Node's client.
    const raw = Buffer.from(address).toString('latin1')
    const answer = await on(key, { 'x-supabase-url': raw }).post('/gateway/fetch', notes)
    assert.deepEqual(refusal(answer), [400, 'invalid_project'], address)
  }
  assert.equal(endpoint.asked.length, before)
  assert.deepEqual(trapped, [])
})

test('an allowed host name that resolves to a private address is rejected at the connection', async () => {
  const { port } = new URL(project)
  const closed = await testService({
    config: {
      gateway: { custom_supabase: { allowed_hosts: [host, `localhost:${port}`] } },
      outbound: { allow_http: true, allow_networks: [] },
    },
  })
  const own = await closed.key(['*'], { client_name: null })
  const before = endpoint.asked.length
  for (const address of [project, `http://localhost:${port}`]) {
    const answer = await on(own, { 'x-supabase-url': address }, closed).post('/gateway/fetch', notes)
    assert.deepEqual(refusal(answer), [400, 'invalid_project'], answer.text)
  }
  assert.equal(endpoint.asked.length, before)
  const strict = await testService({
    config: {
      gateway: { custom_supabase: { allowed_hosts: [host] } },
      outbound: { allow_networks: ['127.0.0.0/8'] },
    },
  })
  const answer = await on(await strict.key(['*'], { client_name: null }), {}, strict).post(
    '/gateway/fetch',
    notes,
  )
  assert.deepEqual([...refusal(answer), answer.body.error], [400, 'invalid_project', 'Only https is allowed'])
  assert.equal(endpoint.asked.length, before)
})

test('only projects of supabase.co are allowed by default', async () => {
  const usual = await testService()
  const own = await usual.key(['*'], { client_name: null })
  for (const address of [
    'https://example.com',
    'https://supabase.co',
    'https://xsupabase.co',
    'https://a.supabase.co.example',
    'https://a.supabase.co:444',
    'http://a.supabase.co',
  ]) {
    const answer = await on(own, { 'x-supabase-url': address }, usual).post('/gateway/fetch', notes)
    assert.deepEqual(refusal(answer), [400, 'invalid_project'], address)
  }
  assert.ok(hostFits('*.supabase.co', 'abcdefghijklmnop.supabase.co'))
  for (const pattern of ['*', '*.*.co', 'a.*.co', 'a..co', '.co', 'a.co.', 'a.co/x', 'user@a.co', 'ü.co', ''])
    assert.equal(hostPatternForm.parse(pattern), undefined, pattern)
})

const MOVED = 'It redirects to https: name it with https://'

test('redirects are not followed', async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    endpoint.intercept = (_, response) => {
      response.writeHead(status, { location: `http://127.0.0.1:${trapPort}/` }).end()
      return true
    }
    const answer = await on(key, { 'x-supabase-key': `another-key-${status}` }).post('/gateway/fetch', notes)
    assert.deepEqual(refusal(answer), [502, 'database_error'], answer.text)
  }
  endpoint.intercept = (_, response) => {
    response.writeHead(301, { location: `https://${host}/` }).end()
    return true
  }
  const moved = await on(key, { 'x-supabase-key': 'moved' }).post('/gateway/fetch', notes)
  assert.deepEqual([...refusal(moved), moved.body.error], [400, 'invalid_project', MOVED])
  assert.deepEqual(trapped, [])
})

test('each key uses its own driver and catalogue', async () => {
  assert.equal((await on(key).post('/gateway/fetch', notes)).status, 200)
  const wrong = on(key, { 'x-supabase-key': 'wrong-key' })
  const before = endpoint.asked.length
  const answer = await wrong.post('/gateway/fetch', notes)
  assert.deepEqual(refusal(answer), [502, 'client_refused'])
  assert.ok(!answer.text.includes('wrong-key'))
  assert.ok(endpoint.asked.length > before, 'the backend was not queried with this key')
  assert.equal((await on(key).post('/gateway/fetch', notes)).status, 200)
})

test('no response is cached, and the structure is read once', async () => {
  const own = on(key)
  await own.post('/gateway/fetch', notes)
  const before = endpoint.asked.length
  for (let round = 0; round < 3; round++) {
    // For a full page, no further request checks whether the backend has cut rows.
    const { headers } = await own.post('/gateway/fetch', { ...notes, limit: 1 })
    assert.equal(headers.get('x-service-cache'), null)
  }
  const asked = endpoint.asked.slice(before)
  assert.deepEqual([asked.length, asked.filter((line) => line.endsWith('/v1/')).length], [3, 0])
})

test('it is not listed, cannot be registered and is unknown without its headers', async () => {
  const { body } = await t.admin.get('/clients')
  assert.ok(!body.clients.includes('custom_supabase'))
  const listed = await t.admin.get('/admin/clients')
  assert.ok(!listed.text.includes('custom_supabase') && !listed.text.includes(endpoint.key))
  const sql = await on(t.admin).post('/gateway/query', { query: 'select 1' })
  assert.deepEqual(refusal(sql), [400, 'unsupported_by_driver'])
})

test('key enforcement works as for any other client', async () => {
  const decide = (enforce_api_keys: boolean) =>
    t.admin.send('PUT', '/admin/api-key-clients/custom_supabase', { body: { enforce_api_keys } })
  assert.equal((await decide(false)).status, 200)
  assert.equal((await on(t.anon).post('/gateway/fetch', notes)).status, 200)
  const config = await t.admin.get('/admin/api-key-config')
  assert.match(config.text, /custom_supabase/)
  assert.equal((await decide(true)).status, 200)
  assert.deepEqual(refusal(await on(t.anon).post('/gateway/fetch', notes)), [401, 'api_key_required'])
})

test('all keys share the request slots of one client, and one key may use half of them', async () => {
  const held: (() => void)[] = []
  endpoint.intercept = (request, response) => {
    // Serve the structure to any key.
    Object.assign(request.headers, { apikey: endpoint.key, authorization: `Bearer ${endpoint.key}` })
    if (request.url?.endsWith('/v1/')) return false
    held.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end('[]'))
    return true
  }
  /** Counts requests that arrive for this number of keys while none is answered. */
  const arriving = async (keys: number, expected: number) => {
    const calls = Array.from({ length: 24 }, (_, index) =>
      on(key, { 'x-supabase-key': `key-${keys}-${index % keys}` }).post('/gateway/fetch', notes),
    )
    for (let round = 0; held.length < expected && round < 200; round++) await sleep(10)
    await sleep(100)
    const arrived = held.length
    const answering = setInterval(() => {
      for (const answer of held.splice(0)) answer()
    }, 5)
    for (const answer of await Promise.all(calls)) assert.equal(answer.status, 200, answer.text)
    clearInterval(answering)
    return arrived
  }
  assert.equal(await arriving(1, 5), 5)
  assert.equal(await arriving(8, 10), 10)
})
