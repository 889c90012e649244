import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

const LIST = '<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>'
const server = await startLoopbackServer(({ method }, response) =>
  response.writeHead(method === 'DELETE' ? 204 : 200).end(method === 'GET' ? LIST : ''),
)
const t = await testService({ config: { outbound: { allow_networks: ['127.0.0.1/32'], allow_http: true } } })
const { apiKey } = await t.key(['gateway.storage_proxy'])

test('members that a call does not have are ignored, also numbers that JavaScript does not have', async () => {
  const credentials = { region: 'eu-test-1', access_key_id: 'AKIATEST', secret_key: 'a very secret key' }
  const asked = JSON.stringify({ ...credentials, endpoint: server.url, bucket: 'reports', key: 'a.txt' })
  const body = asked.replace('{', '{"unknown": 9007199254740993, ')
  const headers = { apikey: apiKey, 'content-type': 'application/json' }
  for (const path of ['', '/head', '/url', '/upload-url', '/delete']) {
    const response = await fetch(`${t.url}/storage/objects${path}`, { method: 'POST', headers, body })
    assert.equal(response.status, 200, `${path}: ${await response.text()}`)
  }
})
