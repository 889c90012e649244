import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'
import { AUDIENCE, startJwtIssuer } from '#test/jwt-issuer.ts'

const suffix = randomBytes(4).toString('hex')
const roles = { anonymous_role: `anon_${suffix}`, signed_in_role: `authenticated_${suffix}` }
const database = await testDatabase()
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
await onServer(`create role ${roles.anonymous_role} nologin; create role ${roles.signed_in_role} nologin;
  grant ${roles.anonymous_role}, ${roles.signed_in_role} to "${new URL(database.url).username}"`)
const acme = await startJwtIssuer()
const issuer = { issuer: acme.issuer, audience: [AUDIENCE] }
const client = (more: object) => ({
  url: database.url,
  row_level_security: { enabled: true, ...roles, ...more },
})
const t = await testService({
  config: {
    outbound: { allow_http: true, allow_networks: ['127.0.0.0/8'] },
    clients: {
      sessions: client({}),
      beside: client({ issuers: [issuer] }),
      organized: client({
        own_sessions: false,
        issuers: [{ ...issuer, claims_map: { organization_id: 'org' }, organization_prefix: 'o:' }],
      }),
      alone: client({ own_sessions: false, issuers: [issuer] }),
    },
  },
})
after(async () => {
  await t.stop()
  await database.drop()
  await onServer(`drop role ${roles.anonymous_role}; drop role ${roles.signed_in_role}`)
})

const RIGHTS = [
  'management.*',
  'management.functions.write',
  'gateway.*',
  'gateway.bypass_row_level_security',
]
const apply = async (name: string, method: string, path: string, body: object) => {
  const { apiKey } = await t.key(RIGHTS, { client_name: name })
  return actor(t.url, { apikey: apiKey, 'x-service-client': name }).send(method, path, { body })
}
const createTable = async (table_name: string, data_type: string) => {
  const columns = [
    { name: 'user_id', data_type },
    { name: 'organization_id', data_type },
  ]
  const made = await apply('sessions', 'POST', '/management/tables', { table_name, columns })
  assert.equal(made.status, 200, made.text)
}
const secure = (name: string, table: string, preset: string) =>
  apply(name, 'PUT', `/management/tables/${table}/row-level-security`, {
    enabled: true,
    policies: [{ preset }],
  })
const caller = async (name: string, claims: Readonly<Record<string, unknown>>) => {
  const { apiKey } = await t.key(['gateway.*'], { client_name: name })
  const token = await acme.sign(claims)
  return actor(t.url, { apikey: apiKey, 'x-service-client': name, authorization: `Bearer ${token}` })
}

await createTable('by_text', 'text')
await createTable('by_uuid', 'uuid')

test('a preset on a text column has the rows of the user whom the issuer names', async () => {
  const set = await secure('beside', 'by_text', 'owner')
  assert.equal(set.status, 200, set.text)
  const [one, other] = [
    await caller('beside', { sub: 'auth0|1' }),
    await caller('beside', { sub: 'auth0|2' }),
  ]
  const insert = { table_name: 'by_text', insert_body: {}, columns: ['user_id'] }
  const inserted = await one.send('PUT', '/gateway/insert', { body: insert })
  assert.deepEqual(inserted.body.data, [{ user_id: 'auth0|1' }], inserted.text)
  const count = async (who: typeof one) =>
    (await who.post('/query/count', { table_name: 'by_text' })).body.count
  assert.deepEqual([await count(one), await count(other)], [1, 0])
})

test('a preset on a uuid column is refused where an issuer chooses the claim, and allowed where ids may be UUIDs', async () => {
  for (const [name, preset, column] of [
    ['beside', 'owner', 'user_id'],
    ['organized', 'organization', 'organization_id'],
  ] as const) {
    const refused = await secure(name, 'by_uuid', preset)
    assert.deepEqual([refused.status, refused.body.code], [400, 'invalid_policy'], refused.text)
    assert.match(refused.body.error, new RegExp(`Column ${column} is a uuid, .*change its type to text`))
  }
  const alone = await secure('alone', 'by_uuid', 'owner')
  assert.equal(alone.status, 200, alone.text)
  const id = '01890000-89ab-7cde-8f01-222222222222'
  const who = await caller('alone', { sub: id })
  const insert = { table_name: 'by_uuid', insert_body: {}, columns: ['user_id'] }
  assert.deepEqual((await who.send('PUT', '/gateway/insert', { body: insert })).body.data, [{ user_id: id }])
})

test('an issuer on a client that has presets on uuid columns makes the client unsafe', async () => {
  const set = await secure('sessions', 'by_uuid', 'owner')
  assert.equal(set.status, 200, set.text)
  // As after a start with an issuer more.
  const later = await testService({
    controlUrl: t.controlUrl,
    config: t.config,
    secrets: t.service.kernel.secrets,
  })
  const fetchBy = async (name: string) => {
    const { apiKey } = await t.key(['gateway.*'], { client_name: name })
    const headers = { apikey: apiKey, 'x-service-client': name }
    return actor(later.url, headers).post('/gateway/fetch', { table_name: 'by_text' })
  }
  const refused = await fetchBy('beside')
  assert.deepEqual([refused.status, refused.body.code], [503, 'unsafe_client'], refused.text)
  assert.match(refused.body.message, /by_uuid\.user_id/)
  assert.match(refused.body.error, /text/)
  for (const name of ['sessions', 'organized', 'alone']) {
    const answer = await fetchBy(name)
    assert.notEqual(answer.body.code, 'unsafe_client', name)
  }
})
