import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { testReceiverUrl } from '#kernel/http/test-receiver.ts'
import { secureRandom, uuidv7 } from '#kernel/random.ts'
import { actor, type TestService, testService } from '#test/harness.ts'
import { exchange } from '#test/hostile/raw-http.ts'

const t = await testService()
const port = Number(new URL(t.url).port)
const RECEIVER = `http://127.0.0.1:${port}/dev/webhooks`
const asAdmin = (t: TestService) => actor(t.url, { ...t.admin.headers, 'x-service-client': 'default' })
const admin = asAdmin(t)
const key = await t.key(['*', 'management.functions.write'])
const create = (url: string, who = admin) => who.post('/admin/webhooks', { route_key: 'gateway_insert', url })
const received = async () => (await t.anon.get('/dev/webhooks')).body.webhooks
const table = await key.post('/management/tables', {
  table_name: 'note',
  columns: [{ name: 'text', data_type: 'text' }],
})
assert.equal(table.status, 200, table.text)

test('an event reaches the receiver of the service without a setting, and is shown as it was sent', async () => {
  assert.deepEqual((await t.anon.get('/dev/webhooks')).body, { url: RECEIVER, webhooks: [] })
  const made = await create(RECEIVER)
  assert.equal(made.status, 201, made.text)
  const { id, secret } = made.body.data
  const body = { table_name: 'note', insert_body: { text: 'hello' } }
  assert.equal((await key.send('PUT', '/gateway/insert', { body })).status, 200)
  await t.service.deliveries.drain()
  const [listed] = await received()
  assert.deepEqual([listed.webhook_id, listed.signature, listed.type], [id, 'verified', 'gateway_insert'])
  const { headers, body: sent, ...rest } = (await t.anon.get(`/dev/webhooks/${listed.id}`)).body
  assert.deepEqual(rest, listed)
  const given = Object.fromEntries(
    headers.map(({ name, value }: { name: string; value: string }) => [name, value]),
  )
  new Webhook(secret).verify(sent, given)
  assert.deepEqual(JSON.parse(sent).data.rows, [{ id: 1, text: 'hello' }])
  const { deliveries } = (await admin.get(`/admin/webhooks/${id}/deliveries`)).body.data
  assert.deepEqual([deliveries[0].status, deliveries[0].response_status], ['succeeded', 200])
  const tried = await admin.post(`/admin/webhooks/${id}/test`)
  assert.equal(tried.body.data.status, 'succeeded')
  assert.equal((await received()).length, 2)
})

test('nothing else on this machine is excepted, and nothing but webhooks', async () => {
  const others = [
    `http://127.0.0.1:${port + 1}/dev/webhooks`,
    `http://127.0.0.1/dev/webhooks`,
    `http://localhost:${port}/dev/webhooks`,
    `http://[::1]:${port}/dev/webhooks`,
    `http://127.0.0.2:${port}/dev/webhooks`,
    `https://127.0.0.1:${port}/dev/webhooks`,
    `http://127.0.0.1:${port}/dev/webhooks/`,
    `http://127.0.0.1:${port}/dev/webhooks?more`,
    `http://127.0.0.1:${port}/dev/webhooks/%2e%2e/mails`,
    `http://user@127.0.0.1:${port}/dev/webhooks`,
    `http://127.0.0.1:${port}/admin/webhooks`,
    `http://127.0.0.1:${port}@169.254.169.254/dev/webhooks`,
  ]
  for (const url of others) {
    const { status, body } = await create(url)
    assert.deepEqual([url, status, body.code], [url, 400, 'invalid_webhook_url'])
    assert.match(body.error, new RegExp(RECEIVER))
  }
  const { outbound } = t.service.kernel
  assert.match(outbound.refusal(RECEIVER) ?? '', /only https/)
  const sending = outbound.send(RECEIVER, { method: 'POST', timeout: 1_000, maxBytes: 10 })
  await assert.rejects(sending, /only https/)
  // Of every port.
  const atPort80 = testReceiverUrl({ ...t.service.kernel, port: () => 80 })
  assert.equal(outbound.refusal('http://127.0.0.1/dev/webhooks', atPort80), undefined)
  // Another spelling of the same URL is the same.
  const made = await create(`HTTP://2130706433:${port}/dev/../dev/webhooks`)
  assert.deepEqual([made.status, made.body.data.url], [201, RECEIVER])
})

test('a request that no webhook has signed is kept, and said to be so', async () => {
  const post = (headers: Record<string, string>) =>
    t.anon.send('POST', '/dev/webhooks', {
      raw: 'not json',
      headers: { 'content-type': 'application/json', ...headers },
    })
  assert.equal((await post({})).status, 200)
  const now = String(Math.floor(Date.now() / 1_000))
  const signed = { 'webhook-id': uuidv7(new Date(), secureRandom), 'webhook-timestamp': now }
  assert.equal((await post({ ...signed, 'webhook-signature': 'v1,AAAA v2,é' })).status, 200)
  const [wrong, missing] = await received()
  assert.deepEqual(
    [wrong, missing].map(({ signature, webhook_id, type }) => [signature, webhook_id, type]),
    [
      ['wrong', null, null],
      ['missing', null, null],
    ],
  )
})

test('an old request is not verified, whoever has signed it', async () => {
  const { id, secret } = (await create(RECEIVER)).body.data
  const at = new Date(Date.now() - 10 * 60_000)
  const signature = new Webhook(secret).sign('e1', at, '{}')
  await t.anon.send('POST', '/dev/webhooks', {
    raw: '{}',
    headers: {
      'content-type': 'application/json',
      'webhook-id': 'e1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': signature,
    },
  })
  const [old] = await received()
  assert.deepEqual([old.webhook_id, old.signature], [id, 'wrong'])
})

test('the newest hundred are kept', async () => {
  for (let round = 0; round < 101; round++) await t.anon.post('/dev/webhooks', { type: `t${round}` })
  const kept = await received()
  assert.deepEqual([kept.length, kept[0].type, kept[99].type], [100, 't100', 't1'])
  const large = JSON.stringify({ text: 'x'.repeat(1_000_000) })
  for (let round = 0; round < 10; round++)
    await t.anon.send('POST', '/dev/webhooks', {
      raw: large,
      headers: { 'content-type': 'application/json' },
    })
  assert.equal((await received()).length, 8)
  const gone = await t.anon.get(`/dev/webhooks/${kept[0].id}`)
  assert.deepEqual([gone.status, gone.body.code], [404, 'not_found'])
})

test('pages of other names and forwarded requests neither read nor write there', async () => {
  const ask = async (method: string, host: string, more = '') =>
    (
      await exchange(port, [
        `${method} /dev/webhooks HTTP/1.1\r\nHost: ${host}\r\n${more}Content-Length: 0\r\nConnection: close\r\n\r\n`,
      ])
    )?.status
  for (const method of ['GET', 'POST']) {
    assert.equal(await ask(method, 'evil.example'), 421)
    assert.equal(await ask(method, `localhost:${port}`, 'Origin: https://evil.example\r\n'), 421)
    assert.equal(await ask(method, `localhost:${port}`, 'X-Forwarded-For: 203.0.113.9\r\n'), 421)
  }
})

test('there is no such receiver in production, nor with several processes', async () => {
  for (const config of [{ production: true }, { server: { workers: 2 } }] as const) {
    const other = await testService({ config })
    assert.equal((await other.anon.get('/dev/webhooks')).status, 404)
    assert.equal((await other.anon.post('/dev/webhooks', {})).status, 404)
    const refused = await create(`${other.url}/dev/webhooks`, asAdmin(other))
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_webhook_url'])
    assert.doesNotMatch(refused.body.error, /test receiver/)
    await other.stop()
  }
})
