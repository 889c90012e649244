import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { actor, testService } from '#test/harness.ts'

/** Two clients of one database, whose callers have roles of their own, and one without row-level security. */
const suffix = randomBytes(4).toString('hex')
const rolesOf = (name: string) => ({ anon: `${name}_anon_${suffix}`, member: `${name}_member_${suffix}` })
const [left, right] = [rolesOf('left'), rolesOf('right')]
const names = [left, right].flatMap(({ anon, member }) => [anon, member])
const database = await testDatabase()
const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
await onServer(
  `${names.map((name) => `create role ${name} nologin;`).join('')} grant ${names.join()} to "${new URL(database.url).username}"`,
)
const clientOf = ({ anon, member }: typeof left) => ({
  url: database.url,
  row_level_security: { enabled: true, anonymous_role: anon, signed_in_role: member },
})
const t = await testService({
  config: { clients: { left: clientOf(left), right: clientOf(right), plain: { url: database.url } } },
})
after(async () => {
  await t.stop()
  await database.drop()
  await onServer(names.map((name) => `drop role ${name};`).join(''))
})

async function managing(client_name: string, rights: readonly string[]) {
  const { apiKey } = await t.key(rights, { client_name })
  const who = actor(t.url, { apikey: apiKey, 'x-service-client': client_name })
  const path = (table: string) => `/management/tables/${table}/row-level-security`
  return {
    who,
    set: (table: string, policies: readonly object[], more: object = {}) =>
      who.send('PUT', path(table), { body: { enabled: true, policies, ...more } }),
    read: async (table: string) => (await who.get(path(table))).body.data,
  }
}

const ALL = ['management.*', 'management.functions.write', 'gateway.*', 'gateway.bypass_row_level_security']
const [ofLeft, ofRight] = [await managing('left', ALL), await managing('right', ALL)]
const weak = await managing('right', ['management.tables.write', 'gateway.*'])
const OWNER = { preset: 'owner', column: 'user_id' }
const ORGANIZATION = { preset: 'organization', column: 'organization_id', insert_only_as_self: 'user_id' }

async function created(table_name: string): Promise<void> {
  const columns = ['user_id', 'organization_id'].map((name) => ({ name, data_type: 'uuid' }))
  const made = await ofLeft.who.post('/management/tables', { table_name, columns })
  assert.equal(made.status, 200, made.text)
}

test('presets of one client are policies of others to the other, which are left alone', async () => {
  await created('shared')
  assert.equal((await ofLeft.set('shared', [ORGANIZATION])).status, 200)
  const before = await ofLeft.read('shared')
  const seen = await ofRight.read('shared')
  assert.deepEqual([seen.policies, seen.other_policies.length], [[], 2])
  for (const policies of [[OWNER], [ORGANIZATION], [ORGANIZATION, OWNER], []]) {
    const set = await weak.set('shared', policies)
    assert.equal(set.status, 200, set.text)
    assert.deepEqual(set.body.data.policies.length, policies.length)
    const { other_policies: _, ...now } = await ofLeft.read('shared')
    assert.deepEqual({ ...now, other_policies: [] }, before)
  }
  const replaced = await weak.set('shared', [OWNER], { replace: true })
  assert.equal(replaced.body.data.details.required_right, 'management.functions.write', replaced.text)
  assert.equal((await ofRight.set('shared', [OWNER], { replace: true })).status, 200)
  assert.deepEqual((await ofLeft.read('shared')).policies, [])
})

test('the rights to columns of both are renewed, and one client cannot open the table of the other', async () => {
  await created('both')
  assert.equal((await ofLeft.set('both', [ORGANIZATION])).status, 200)
  assert.equal((await ofRight.set('both', [ORGANIZATION])).status, 200)
  const operations = [{ operation: 'add_column', column: { name: 'more', data_type: 'text' } }]
  const edited = await ofRight.who.send('PATCH', '/management/tables/both', { body: { operations } })
  assert.equal(edited.status, 200, edited.text)
  for (const { member } of [left, right]) {
    const may = await sql(`select has_column_privilege('${member}', 'both', 'more', 'update') as more,
      has_column_privilege('${member}', 'both', 'user_id', 'update') as fixed`)
    assert.deepEqual(may, [{ more: true, fixed: false }])
  }
  const opened = await ofRight.set('both', [], { enabled: false })
  assert.deepEqual([opened.status, opened.body.code], [409, 'object_in_use'], opened.text)
})

test('a table that one client creates is closed to the roles of every client of its database', async () => {
  const columns = [{ name: 'a', data_type: 'text' }]
  const open = (table: string) =>
    sql(`select role from unnest('{${names.join()}}'::text[]) as role
      where has_table_privilege(role, '${table}', 'select, insert, update, delete, truncate, references, trigger')`)
  const isGuarded = (table: string) =>
    sql(`select relrowsecurity as on from pg_class where relname = '${table}'`)
  for (const client of ['left', 'right', 'plain']) {
    const { who } = await managing(client, ALL)
    const make = async (table_name: string) => {
      const made = await who.post('/management/tables', { table_name, columns })
      assert.equal(made.status, 200, made.text)
    }
    await sql(`alter default privileges grant all on tables to ${names.join()}`)
    await make(`of_${client}`)
    assert.deepEqual([await open(`of_${client}`), await isGuarded(`of_${client}`)], [[], [{ on: false }]])
    // The rights of PUBLIC are theirs as well; without a policy they see no row.
    await sql('alter default privileges grant all on tables to public')
    await make(`public_of_${client}`)
    assert.deepEqual(await isGuarded(`public_of_${client}`), [{ on: true }])
    await sql(`alter default privileges revoke all on tables from public, ${names.join()}`)
  }
})
