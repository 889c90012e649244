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

/** Asked again when a busy machine does not sign, connect or read within ten seconds, which is told with 502 to 504. */
async function listed(): Promise<void> {
  let answer = await list()
  while ([502, 503, 504].includes(answer.status)) answer = await list()
  assert.equal(answer.status, 200, answer.text)
}

/** Of what the whole process does for them. Read by the event loop, they would take nearly all of it there. */
const MOST = 0.25

test('answers of a megabyte of XML entities are read beside the event loop, so that other callers do not wait', async (context) => {
  // Loads the SDK.
  await listed()
  const [ofThread, ofProcess] = [process.threadCpuUsage(), process.cpuUsage()]
  for (let round = 0; round < 8; round++) await Promise.all(Array.from({ length: 4 }, listed))
  const [loop, all] = [sum(process.threadCpuUsage(ofThread)), sum(process.cpuUsage(ofProcess))]
  const share = `${(loop / 1_000).toFixed(0)} of ${(all / 1_000).toFixed(0)} ms of processor time`
  context.diagnostic(`the event loop had ${share}`)
  assert.ok(loop < MOST * all, share)
})

const sum = ({ user, system }: NodeJS.CpuUsage): number => user + system
