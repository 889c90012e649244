import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Answer } from '#test/harness.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const {
  sql,
  roles,
  admin,
  adas,
  stranger,
  keyWith,
  createTable,
  secure,
  secured,
  readBack,
  insert,
  fetched,
} = await createSecuredTables()

const WRITE = 'management.tables.write'
const BYPASS = 'gateway.bypass_row_level_security'
const FUNCTIONS = 'management.functions.write'
const lacking = ({ status, body }: Answer) => [status, body.data?.details.required_rights]

test('a preset needs the rights that it gives to others', async () => {
  const ORGANIZATION = { name: 'organization_id', data_type: 'uuid' }
  await createTable('given', [TEXT, USER, ORGANIZATION])
  await insert(admin, 'given', { text: 'hidden' })
  const before = await readBack('given')
  const every = ['given.read', 'given.write', 'given.delete']
  for (const [preset, rights, missing] of [
    ['owner', [], every],
    ['owner', ['given.read', 'given.write', BYPASS], ['given.delete']],
    ['owner', ['given.write', 'gateway.delete'], ['given.read']],
    ['organization', ['*.read', 'given.delete'], ['given.write']],
    ['organization', ['other.*'], every],
    ['public_read', ['given.*'], [BYPASS]],
    ['public_read', [BYPASS, 'other.read'], ['given.read']],
    ['signed_in_read', ['gateway.*', FUNCTIONS], [BYPASS]],
    ['signed_in_read', [BYPASS, 'given.write'], ['given.read']],
  ] as const) {
    const who = await keyWith([WRITE, ...rights])
    const refused = await secure('given', { policies: [{ preset }] }, who)
    assert.deepEqual(lacking(refused), [403, missing], `${preset} with ${rights.join()}`)
    assert.deepEqual(await readBack('given'), before)
  }
  // Each policy of a list is judged.
  const all = await keyWith([WRITE, 'given.*'])
  const list = [{ preset: 'owner' }, { preset: 'public_read' }]
  assert.deepEqual(lacking(await secure('given', { policies: list }, all)), [403, [BYPASS]])
  assert.deepEqual(
    [await fetched(stranger, 'given'), await fetched(adas, 'given')],
    Array(2).fill('permission_denied'),
  )

  for (const preset of ['owner', 'organization'])
    assert.equal((await secure('given', { policies: [{ preset }] }, all)).status, 200)
  const reader = await keyWith([WRITE, 'given.read', BYPASS])
  for (const preset of ['public_read', 'signed_in_read'])
    assert.equal((await secure('given', { policies: [{ preset }] }, reader)).status, 200)
  assert.equal((await secure('given', { policies: [] }, await keyWith([WRITE]))).status, 200)
})

test('rights to tables of another schema do not count', async () => {
  await sql('create schema apart; create table apart.given (id int primary key, text text, user_id uuid)')
  await createTable('known_now', [TEXT])
  const body = { schema_name: 'apart', policies: [{ preset: 'owner' }] }
  const refused = await secure('given', body, await keyWith([WRITE, 'given.*']))
  assert.deepEqual(lacking(refused), [403, ['apart.given.read', 'apart.given.write', 'apart.given.delete']])
  assert.equal((await secure('given', body, await keyWith([WRITE, 'apart.given.*']))).status, 200)
})

test('an expression policy is taken away with the right to write one', async () => {
  await createTable('ruled', [TEXT, USER])
  const own = { name: 'own', command: 'select', roles: [roles.member], using: 'text is null' }
  const key = await keyWith([WRITE, 'ruled.*', BYPASS])
  const needsFunctions = [403, [FUNCTIONS]]
  const sets = [
    { policies: [] },
    { policies: [{ preset: 'owner' }] },
    { policies: [{ preset: 'public_read' }] },
    { enabled: false },
  ]
  const refusedAll = async (more: object = {}) => {
    const before = await readBack('ruled')
    for (const set of sets) {
      const answer = await secure('ruled', { ...set, ...more }, key)
      assert.deepEqual(lacking(answer), needsFunctions, JSON.stringify(set))
    }
    assert.deepEqual(await readBack('ruled'), before)
  }
  await secured('ruled', [own, { preset: 'owner' }])
  await refusedAll()

  // A preset that was changed in the database is an expression, too.
  await secured('ruled', [{ preset: 'owner' }])
  await sql('alter policy gatehouse_owner on ruled using (text is null)')
  await refusedAll()

  await secured('ruled', [{ preset: 'owner' }])
  await sql('create policy theirs on ruled as restrictive using (text is not null)')
  await refusedAll({ replace: true })
  for (const set of sets) {
    const answer = await secure('ruled', set, key)
    assert.deepEqual([answer.status, answer.body.data?.other_policies.length], [200, 1], answer.text)
  }
  await secured('ruled', [{ preset: 'owner' }], { replace: true })
  for (const set of sets) assert.equal((await secure('ruled', { ...set, replace: true }, key)).status, 200)
})

test('a preset whose rights put a policy of others into effect needs the bypass right', async () => {
  await createTable('dormant', [TEXT, USER])
  await insert(admin, 'dormant', { text: 'hidden' })
  await sql('create policy theirs on dormant for select using (true)')
  const bound = await keyWith([WRITE, 'dormant.*'])
  const owner = { policies: [{ preset: 'owner' }] }
  assert.deepEqual(lacking(await secure('dormant', owner, bound)), [403, [BYPASS]])
  assert.equal(await fetched(adas, 'dormant'), 'permission_denied')
  assert.equal((await secure('dormant', owner, await keyWith([WRITE, 'dormant.*', BYPASS]))).status, 200)
  assert.equal((await fetched(adas, 'dormant')).length, 1)
  // It is in effect already, and another command has no policy of others.
  assert.equal((await secure('dormant', owner, bound)).status, 200)
  assert.equal((await secure('dormant', { policies: [] }, bound)).status, 200)
  await sql(`alter policy theirs on dormant to ${roles.anon}`)
  await secured('dormant', [])
  assert.equal((await secure('dormant', owner, bound)).status, 200)
})

test('with enabled: true, policies is required, and nothing is removed without it', async () => {
  await createTable('whole', [TEXT, USER])
  await secured('whole', [{ preset: 'owner' }])
  const before = await readBack('whole')
  for (const body of [{}, { replace: true }]) {
    const answer = await secure('whole', body)
    assert.deepEqual([answer.status, answer.body.data?.details], [400, { field: 'policies' }], answer.text)
    assert.match(answer.body.error, /policies is required/)
  }
  assert.deepEqual(await readBack('whole'), before)
  assert.equal((await secure('whole', { enabled: false })).status, 200)
})
