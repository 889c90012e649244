import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, answering, cut, half, json, refused, rows } from './answering-server.ts'

test('a read is sent again when the service could not answer, three times at most', async () => {
  const passing = await answering(cut, half, refused(503, 'client_busy'), rows)
  assert.deepEqual(await passing.orders.select('id').orThrow(), [{ id: 1 }])
  assert.equal(new Set(passing.received.map(({ body }) => body)).size, 1)
  const lasting = await answering(cut)
  const { error } = await lasting.orders.select('id')
  assert.deepEqual([error?.code, error?.status, lasting.received.length], ['network', 0, 4])
  const counted = await answering(refused(429, 'too_many_requests'), json(200, { count: 7 }))
  assert.equal(await counted.orders.count().orThrow(), 7)
})

test('a refusal that would come again is not asked for twice', async () => {
  for (const answer of [
    refused(400, 'unknown_column'),
    refused(401, 'invalid_api_key'),
    refused(500, 'internal_error'),
    refused(504, 'statement_timeout'),
  ]) {
    const { orders, received } = await answering(answer, rows)
    const { error } = await orders.select('id')
    assert.deepEqual([error?.message, error?.hint, error?.requestId], ['A message', 'Some advice', 'r1'])
    assert.equal(received.length, 1)
  }
})

test('the service says how long to wait, up to ten seconds', async () => {
  const short = await answering(refused(429, 'too_many_requests', { 'retry-after': '1' }), rows)
  assert.deepEqual(await short.orders.select('id').orThrow(), [{ id: 1 }])
  const long = await answering(refused(429, 'too_many_requests', { 'retry-after': '11' }), rows)
  const { error } = await long.orders.select('id')
  assert.deepEqual([error?.code, error?.retryAfter, long.received.length], ['too_many_requests', 11, 1])
})

test('writes, functions and SQL are sent once, whatever happens to the answer', async () => {
  for (const answer of [cut, half, refused(503, 'client_busy'), refused(409, 'write_conflict')]) {
    const { client, received } = await answering(answer, rows)
    const db = client()
    const asked = [
      db.from('orders').insert({ id: 1 }),
      db.from('orders').upsert({ id: 1 }, { onConflict: 'id' }),
      db.from('orders').upsert([{ id: 1 }, { id: 2 }], { onConflict: 'id' }),
      db.from('orders').update({ id: 1 }).eq('id', 1),
      db.from('orders').delete().eq('id', 1),
      db.transaction([db.from('orders').insert({ id: 1 })]),
      db.rpc('f', {}),
      db.sql('select 1'),
    ]
    for (const query of asked) {
      received.length = 0
      const { error } = await query
      assert.ok(error)
      assert.equal(received.length, 1)
      // The next one gets the first answer again.
      received.length = 0
    }
  }
})

test('a write under a key is sent again, as the same transaction with the same key', async () => {
  const { client, received } = await answering(
    cut,
    refused(409, 'write_conflict'),
    json(200, { results: [{ id: '0', data: [], affected_rows: 1 }] }),
  )
  const written = await client().from('orders').insert({ id: 1 }).idempotent('key-1')
  assert.deepEqual([written.error, written.count], [null, 1])
  assert.deepEqual(
    received.map(({ path, headers }) => [path, headers['idempotency-key']]),
    Array(3).fill(['/gateway/transaction', 'key-1']),
  )
  assert.equal(new Set(received.map(({ body }) => body)).size, 1)
})

test('an answer that is not of the service is a network error with its status, and a redirect is not followed', async () => {
  const html: Answer = (response) =>
    response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Not here</h1>')
  const wrong = await answering(html)
  const { error } = await wrong.orders.select('id')
  assert.deepEqual([error?.code, error?.status, wrong.received.length], ['network', 404, 1])
  const elsewhere = await answering(rows)
  const moved = await answering((response) => response.writeHead(307, { location: elsewhere.url }).end())
  const { error: redirected } = await moved.client({ key: 'svc_key' }).from('orders').select('id')
  assert.deepEqual([redirected?.code, elsewhere.received.length], ['network', 0])
  const text = await answering((response) => response.writeHead(200).end('all is well'))
  assert.equal((await text.orders.select('id')).error?.code, 'network')
})

test('Retry-After may be a date, as proxies write it', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 0, 1) })
  const at = (seconds: number) => ({ 'retry-after': new Date(Date.now() + seconds * 1_000).toUTCString() })
  const long = await answering(refused(503, 'client_busy', at(60)))
  const { error } = await long.orders.select('id')
  assert.deepEqual([error?.code, error?.retryAfter, long.received.length], ['client_busy', 60, 1])
  const past = await answering(refused(503, 'client_busy', at(-60)), rows)
  assert.deepEqual(await past.orders.select('id').orThrow(), [{ id: 1 }])
  for (const text of ['soon', '-5', '']) {
    const odd = await answering(refused(400, 'invalid_json', { 'retry-after': text }))
    assert.equal((await odd.orders.select('id')).error?.retryAfter, undefined)
  }
})
