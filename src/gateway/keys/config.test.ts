import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { shutDatabase, testDatabase, withClient } from '#test/database.ts'
import { type Answer, actor, controlDatabase, type TestService, testService } from '#test/harness.ts'

const controlUrl = await controlDatabase()
const database = await testDatabase()
await withClient(database.url, (client) => client.query('create table note (id int)'))
const config = {
  clients: { shut: { url: database.url, enforce_api_keys: true }, plain: { url: database.url } },
}
const t = await testService({ controlUrl, config })
/** Simulates another process of the same service. */
const otherProcess = await testService({ controlUrl, config })

const refusal = ({ status, body }: Answer) => [status, body.code]
/** Status of a request without a key on this client. */
const keyless = async (client: string, service: TestService = otherProcess) =>
  (await actor(service.url, { 'x-service-client': client }).post('/gateway/fetch', { table_name: 'note' }))
    .status
const setDefault = (enforce_api_keys: boolean | null) =>
  t.admin.send('PUT', '/admin/api-key-config', { body: { enforce_api_keys } })
const setClient = (name: string, enforce_api_keys: boolean) =>
  t.admin.send('PUT', `/admin/api-key-clients/${name}`, { body: { enforce_api_keys } })
const unsetClient = (name: string) => t.admin.send('DELETE', `/admin/api-key-clients/${name}`)
const sources = async () => {
  const { data } = (await t.admin.get('/admin/api-key-config')).body
  type Entry = { client_name: string; enforce_api_keys: boolean; source: string }
  const each = data.clients.map((entry: Entry) => [entry.client_name, entry.enforce_api_keys, entry.source])
  return [['*', data.enforce_api_keys, data.source], ...each]
}

test('precedence: run-time setting of the client, its configuration, run-time default, configured default', async () => {
  assert.deepEqual(await sources(), [
    ['*', true, 'configuration'],
    ['default', true, 'configuration'],
    ['logging', true, 'configuration_client'],
    ['plain', true, 'configuration'],
    ['shut', true, 'configuration_client'],
  ])
  assert.deepEqual([await keyless('plain'), await keyless('shut')], [401, 401])

  await setDefault(false)
  assert.deepEqual([await keyless('plain'), await keyless('shut'), await keyless('logging')], [200, 401, 401])
  await setClient('shut', false)
  await setClient('plain', true)
  assert.deepEqual([await keyless('plain'), await keyless('shut')], [401, 200])
  assert.deepEqual(await sources(), [
    ['*', false, 'runtime'],
    ['default', false, 'runtime'],
    ['logging', true, 'configuration_client'],
    ['plain', true, 'runtime_client'],
    ['shut', false, 'runtime_client'],
  ])

  assert.equal((await unsetClient('shut')).status, 200)
  assert.equal((await unsetClient('plain')).status, 200)
  assert.deepEqual([await keyless('plain'), await keyless('shut')], [200, 401])
  assert.equal((await setDefault(null)).body.data.source, 'configuration')
  assert.deepEqual([await keyless('plain'), await keyless('shut')], [401, 401])
})

test('a setting takes effect in every process before the response', async () => {
  for (let round = 0; round < 20; round++) {
    await setClient('plain', round % 2 === 0)
    const expected = round % 2 === 0 ? 401 : 200
    assert.deepEqual([await keyless('plain'), await keyless('plain', t)], [expected, expected])
  }
  await unsetClient('plain')
})

test('without enforcement only data operations work without a key, and a sent key is still checked', async () => {
  await setDefault(false)
  const anybody = actor(t.url, { 'x-service-client': 'plain' })
  assert.equal((await anybody.get('/management/capabilities')).status, 401)
  assert.equal((await anybody.get('/admin/clients')).status, 401)
  const wrong = await anybody.post('/gateway/fetch', { table_name: 'note' }, { headers: { apikey: 'wrong' } })
  assert.deepEqual(refusal(wrong), [401, 'invalid_api_key'])
  const weak = await t.key(['other.read'], { client_name: 'plain' })
  const refused = await actor(t.url, { ...weak.headers, 'x-service-client': 'plain' }).post(
    '/gateway/fetch',
    {
      table_name: 'note',
    },
  )
  assert.deepEqual(refusal(refused), [403, 'insufficient_rights'])
  await setDefault(null)
})

test('invalid settings are rejected, and only the admin key may change them', async () => {
  assert.deepEqual(refusal(await setClient('absent', false)), [404, 'client_not_found'])
  assert.deepEqual(refusal(await setClient('*', false)), [404, 'client_not_found'])
  assert.deepEqual(refusal(await setClient('constructor', false)), [404, 'client_not_found'])
  assert.deepEqual(refusal(await setClient('logging', false)), [409, 'client_configured'])
  assert.deepEqual(refusal(await unsetClient('shut')), [404, 'api_key_client_not_found'])
  await setDefault(false)
  assert.deepEqual(refusal(await unsetClient('*')), [404, 'api_key_client_not_found'])
  await setDefault(null)
  const empty = await t.admin.send('PUT', '/admin/api-key-config', { body: {} })
  assert.deepEqual(refusal(empty), [400, 'validation_error'])

  const key = await t.key(['*'])
  for (const [method, path, body] of [
    ['GET', '/admin/api-key-config', undefined],
    ['PUT', '/admin/api-key-config', { enforce_api_keys: false }],
    ['PUT', '/admin/api-key-clients/plain', { enforce_api_keys: false }],
    ['DELETE', '/admin/api-key-clients/plain', undefined],
  ] as const) {
    const ask = body === undefined ? {} : { body }
    assert.deepEqual(refusal(await t.anon.send(method, path, ask)), [401, 'api_key_required'])
    assert.deepEqual(refusal(await key.send(method, path, ask)), [403, 'insufficient_rights'])
  }
})

test('a client without enforcement requires keys while its setting cannot be read', async () => {
  const away = await testService({
    config: { gateway: { enforce_api_keys: false }, clients: config.clients },
  })
  assert.equal(await keyless('plain', away), 200)
  await shutDatabase(away.controlUrl)
  while (away.service.kernel.coherence.isTrusted()) await sleep(10)
  const { status, body } = await actor(away.url, { 'x-service-client': 'plain' }).post('/gateway/fetch', {
    table_name: 'note',
  })
  assert.deepEqual([status, body.code], [503, 'api_key_validation_unavailable'])
})
