import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

const text = `<ListBucketResult><Name>${'&amp;'.repeat(209_000)}</Name></ListBucketResult>`
const server = await startLoopbackServer((_request, response) => response.end(text))
const t = await testService({ config: { outbound: { allow_networks: ['127.0.0.1/32'], allow_http: true } } })
const { apiKey } = await t.key(['gateway.storage_proxy'])
const holder = actor(t.url, { apikey: apiKey })
const asked = {
  region: 'x',
  access_key_id: 'a',
  secret_key: 'b',
  endpoint: server.url,
  bucket: 'reports',
  max_keys: 1_000,
}

/** Answers of /ping, one after the other until the work is done. */
async function pingsDuring(work: Promise<unknown>): Promise<number> {
  let isDone = false
  work.finally(() => {
    isDone = true
  })
  let count = 0
  for (; !isDone; count++) assert.equal((await t.anon.get('/ping')).status, 200)
  await work
  return count
}

test('answers of a megabyte of XML entities do not keep other callers waiting', async (context) => {
  const list = () => holder.post('/storage/objects', asked)
  // Loads the SDK.
  assert.equal((await list()).status, 200)
  const count = await pingsDuring(Promise.all(Array.from({ length: 8 }, list)))
  context.diagnostic(`${count} answers of /ping beside eight answers of the server`)
  // A process that reads them itself answers to nobody meanwhile, but between two of them.
  assert.ok(count > 80, `${count} answers`)
})
