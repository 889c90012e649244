import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { ADMIN_KEY, type Answer, actor, testService } from '#test/harness.ts'
import { whileArriving } from '#test/slow-body.ts'

const t = await testService()
const key = await t.key(['gateway.*'])
const other = await t.key(['gateway.*'])

before(() => withClient(t.clientUrl, (client) => client.query('create table users (id int primary key)')))

const refusal = ({ status, body }: Answer) => [status, body.code ?? 'ok']
const asClient = (headers: Record<string, string>, query = '') =>
  actor(t.url, { 'x-service-client': 'default', ...headers }).post(`/gateway/fetch${query}`, {
    table_name: 'users',
    limit: 1,
  })

test('a key is accepted in each header and in the query', async () => {
  const places: readonly (readonly [headers: Record<string, string>, query?: string])[] = [
    [{ 'x-service-key': key.apiKey }],
    [{ apikey: key.apiKey }],
    [{ 'x-api-key': key.apiKey }],
    [{ authorization: `Bearer ${key.apiKey}` }],
    [{ authorization: `bearer  ${key.apiKey} ` }],
    [{}, `?api_key=${key.apiKey}`],
    [{}, `?api_key=${key.apiKey}&api_key=${key.apiKey}`],
    [
      { apikey: key.apiKey, 'x-api-key': key.apiKey, authorization: `Bearer ${key.apiKey}` },
      `?api_key=${key.apiKey}`,
    ],
    [{ apikey: key.apiKey, 'x-api-key': '' }],
  ]
  for (const [headers, query] of places) {
    assert.deepEqual(refusal(await asClient(headers, query)), [200, 'ok'], JSON.stringify([headers, query]))
  }
})

test('an invalid key is rejected in each of them', async () => {
  const [, secret = ''] = key.apiKey.split('.')
  const flipped = secret.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))
  const wrong = [
    'nonsense', `svc_0123456789abcdef.${secret}`, key.apiKey.replace(secret, flipped), `${key.apiKey}x`, key.apiKey.slice(0, -1), key.apiKey.toUpperCase(),
    `${ADMIN_KEY}x`, ADMIN_KEY.slice(1), secret, key.keyId,
  ] // biome-ignore format: a table
  for (const text of wrong) {
    for (const headers of [
      { apikey: text },
      { 'x-service-key': text },
      { authorization: `Bearer ${text}` },
    ]) {
      assert.deepEqual(refusal(await asClient(headers)), [401, 'invalid_api_key'], text)
    }
    assert.deepEqual(refusal(await asClient({}, `?api_key=${encodeURIComponent(text)}`)), [
      401,
      'invalid_api_key',
    ])
  }
  assert.deepEqual((await asClient({})).body.message, 'API key required')
  assert.deepEqual(refusal(await asClient({ authorization: `Basic ${key.apiKey}` })), [
    401,
    'api_key_required',
  ])
  assert.deepEqual(refusal(await asClient({ 'x-service-admin-key': ADMIN_KEY })), [401, 'api_key_required'])
})

test('two different keys are rejected as ambiguous, in any combination of places', async () => {
  const pairs: readonly (readonly [headers: Record<string, string>, query?: string])[] = [
    [{ apikey: key.apiKey, 'x-api-key': other.apiKey }],
    [{ apikey: key.apiKey, 'x-service-key': 'nonsense' }],
    [{ apikey: key.apiKey, authorization: `Bearer ${other.apiKey}` }],
    [{ apikey: key.apiKey, authorization: `Bearer ${ADMIN_KEY}` }],
    [{ apikey: ADMIN_KEY, 'x-api-key': key.apiKey }],
    [{ 'x-service-key': key.apiKey }, `?api_key=${other.apiKey}`],
    [{}, `?api_key=${key.apiKey}&api_key=${other.apiKey}`],
  ]
  for (const [headers, query] of pairs) {
    assert.deepEqual(
      refusal(await asClient(headers, query)),
      [400, 'ambiguous_api_key'],
      JSON.stringify([headers, query]),
    )
  }
})

test('together with another key, a Bearer token may be a session and is ignored', async () => {
  const ada = await t.signUp('Ada')
  assert.deepEqual(refusal(await asClient({ apikey: key.apiKey, authorization: `Bearer ${ada.token}` })), [
    200,
    'ok',
  ])
  assert.deepEqual(refusal(await asClient({ authorization: `Bearer ${ada.token}` })), [
    401,
    'invalid_api_key',
  ])
})

test('a key or rotated secret that expires while the body arrives is rejected', async () => {
  const soon = new Date(Date.now() + 60_000).toISOString()
  const expiring = await t.key(['gateway.*'], { expires_at: soon })
  const rotated = await t.key(['gateway.*'])
  const rotation = await t.admin.post(`/admin/api-keys/${rotated.keyId}/rotate`, { grace_seconds: 60 })
  assert.equal(rotation.status, 200, rotation.text)
  const late = (headers: Readonly<Record<string, string>>, happen: () => Promise<unknown>) =>
    whileArriving(
      t.url,
      {
        path: '/gateway/fetch',
        headers: { ...headers, 'x-service-client': 'default' },
        body: { table_name: 'users' },
      },
      happen,
    )
  assert.match(await late(expiring.headers, async () => {}), / 200 OK/)
  assert.match(await late(rotated.headers, async () => {}), / 200 OK/)
  assert.match(await late(expiring.headers, async () => t.advance(61_000)), / 401 .*expired_api_key/s)
  t.advance(-61_000)
  assert.match(await late(rotated.headers, async () => t.advance(61_000)), / 401 .*invalid_api_key/s)
})
