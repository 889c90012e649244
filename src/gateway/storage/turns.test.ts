import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

const LARGE = `<ListBucketResult><Name>${'&a;'.repeat(60_000)}</Name></ListBucketResult>`
const SMALL = '<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>'
const server = await startLoopbackServer(({ url }, response) =>
  response.end(url?.startsWith('/large') ? LARGE : SMALL),
)
const t = await testService({ config: { outbound: { allow_networks: ['127.0.0.1/32'], allow_http: true } } })
const holderOf = async () => {
  const { apiKey } = await t.key(['gateway.storage_proxy'])
  return actor(t.url, { apikey: apiKey })
}
const list = async (holder: Awaited<ReturnType<typeof holderOf>>, bucket: string) => {
  const asked = { region: 'x', access_key_id: 'a', secret_key: 'b', endpoint: server.url, max_keys: 1_000 }
  return (await holder.post('/storage/objects', { ...asked, bucket })).status
}

test('answers of one key that take long to read are not read before those of another key', async () => {
  const [one, other] = [await holderOf(), await holderOf()]
  // Loads the SDK.
  await list(one, 'small')
  const done: string[] = []
  const large = Array.from({ length: 8 }, async () => {
    assert.equal(await list(one, 'large'), 200)
    done.push('large')
  })
  while (done.length === 0) await Promise.race(large)
  assert.equal(await list(other, 'small'), 200)
  // Signing and reading wait for one answer each; one more may have been under way.
  assert.ok(done.length <= 4, `${done.length} of ${large.length} were read before`)
  await Promise.all(large)
})
