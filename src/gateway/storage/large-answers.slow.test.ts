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

/** Times of requests to /ping, in milliseconds, one after the other until the work is done. */
async function pingsDuring(work: Promise<unknown>): Promise<readonly number[]> {
  let isDone = false
  work.finally(() => {
    isDone = true
  })
  const times: number[] = []
  while (!isDone || times.length < 500) {
    const began = performance.now()
    assert.equal((await t.anon.get('/ping')).status, 200)
    times.push(performance.now() - began)
  }
  await work
  return times.toSorted((a, b) => a - b)
}

const p99 = (times: readonly number[]): number => times[Math.floor(times.length * 0.99)] ?? 0

test('answers of a megabyte of XML entities do not keep other callers waiting', async (context) => {
  const list = () => holder.post('/storage/objects', asked)
  // Loads the SDK.
  assert.equal((await list()).status, 200)
  await pingsDuring(Promise.resolve())
  const idle = p99(await pingsDuring(Promise.resolve()))
  const busy = await pingsDuring(Promise.all(Array.from({ length: 8 }, list)))
  context.diagnostic(
    `p99 of /ping: ${idle.toFixed(1)} ms idle, ${p99(busy).toFixed(1)} ms beside the answers, of ${busy.length}`,
  )
  assert.ok(p99(busy) <= 3 * idle, `${p99(busy)} ms, idle ${idle} ms`)
})
