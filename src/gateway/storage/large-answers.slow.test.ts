import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { actor, testService } from '#test/harness.ts'

/** In a thread of its own, since it would keep the callers waiting itself. Each answer is 1 MiB of XML entities. */
const SERVER = `
  const { createServer } = require('node:http')
  const { parentPort } = require('node:worker_threads')
  const text = Buffer.from('<ListBucketResult><Name>' + '&amp;'.repeat(209_000) + '</Name></ListBucketResult>')
  const server = createServer((request, response) => response.end(text))
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`
const server = new Worker(SERVER, { eval: true })
server.unref()
const port = await new Promise((resolve) => server.once('message', resolve))
const t = await testService({ config: { outbound: { allow_networks: ['127.0.0.1/32'], allow_http: true } } })
const { apiKey } = await t.key(['gateway.storage_proxy'])
const holder = actor(t.url, { apikey: apiKey })
const asked = {
  region: 'x',
  access_key_id: 'a',
  secret_key: 'b',
  endpoint: `http://127.0.0.1:${port}`,
  bucket: 'reports',
  max_keys: 1_000,
}
const list = () => holder.post('/storage/objects', asked)

/** The 99th percentile of requests to /ping in milliseconds, one after the other until the work is done. */
async function slowestDuring(work: Promise<unknown>): Promise<number> {
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
  return quantile(times, 0.99)
}

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * part)] ?? 0

/** At least, and at most: another load on the machine disturbs single rounds. */
const ROUNDS = [5, 15] as const

test('answers of a megabyte of XML entities do not keep other callers waiting', async (context) => {
  // Loads the SDK.
  assert.equal((await list()).status, 200)
  await slowestDuring(Promise.resolve())
  const idle: number[] = []
  const busy: number[] = []
  const middle = (values: readonly number[]) => quantile(values, 0.5)
  const isEnough = () => idle.length >= ROUNDS[0] && middle(busy) <= 3 * middle(idle)
  while (!isEnough() && idle.length < ROUNDS[1]) {
    idle.push(await slowestDuring(Promise.resolve()))
    busy.push(await slowestDuring(Promise.all(Array.from({ length: 8 }, list))))
  }
  const [alone, beside] = [middle(idle).toFixed(1), middle(busy).toFixed(1)]
  context.diagnostic(
    `p99 of /ping in ${idle.length} rounds: ${alone} ms idle, ${beside} ms beside the answers`,
  )
  assert.ok(isEnough(), `${beside} ms, idle ${alone} ms`)
})
