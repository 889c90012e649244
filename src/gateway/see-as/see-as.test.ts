import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, testService } from '#test/harness.ts'
import { OPERATE, operatorOf, sending } from '#test/operators.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'
import { impersonated } from '#test/permissions/impersonated.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const BYPASS = 'gateway.bypass_row_level_security'
const ORGANIZATION = { name: 'organization_id', data_type: 'uuid' }
const gatewayOf = (...rights: string[]) => ({ gateway: { app: rights } })
const { t, sql, roles, users, admin, adas, beas, keyWith, createTable, secured, insert } =
  await createSecuredTables({
    auth: {
      admin: {
        allow_impersonating_admins: true,
        roles: {
          agent: gatewayOf('todo.read', 'management.*'),
          auditor: gatewayOf('todo.read', BYPASS),
          guarded: {},
        },
      },
      two_factor: { required_for: ['guarded'] },
    },
  })
const { ada, bea } = users
const { db, coherence } = t.service.kernel
await createTable('todo', [TEXT, USER])
await secured('todo', [{ preset: 'owner' }])
await sql(`create view mine as select text, id from todo where user_id::text = current_setting('request.claims')::json ->> 'user_id';
  grant select on mine to ${roles.member}`)
await sql(`create table noted (n int);
  create function note() returns boolean language sql security definer as 'insert into noted values (1) returning true';
  create view noting as select id, text from todo where note();
  grant select on noting to ${roles.member}`)
// The change makes the catalogue know the views.
await secured('todo', [{ preset: 'owner' }])
await insert(adas, 'todo', [{ text: 'a1' }, { text: 'a2' }])
await insert(beas, 'todo', { text: 'b1' })

type Asked = Readonly<Record<string, unknown>>
const see = (asked: Asked, who = admin) =>
  who.post('/see-as', { table_name: 'todo', columns: ['text'], sort_by: { field: 'id' }, ...asked })
const textsOf = async (asked: Asked) => {
  const { status, body, text } = await see(asked)
  assert.equal(status, 200, text)
  return body.refused?.code ?? body.data.map((row: { text: string }) => row.text)
}
const trail = () =>
  db
    .selectFrom('auditEvent')
    .select(['actorId', 'targetId', 'clientName', 'organizationId', 'details', 'targetType'])
    .where('action', '=', 'rows.seen_as')
    .orderBy('id')
    .execute()

test('one sees what policies show a user, a visitor, and anyone who is signed in', async () => {
  assert.deepEqual(await textsOf({ user_id: ada.id }), ['a1', 'a2'])
  assert.deepEqual(await textsOf({ user_id: bea.id }), ['b1'])
  assert.deepEqual(await textsOf({ user_id: ada.id, limit: 1, offset: 1 }), ['a2'])
  const conditions = [{ column: 'text', operator: 'eq', value: 'b1' }]
  assert.deepEqual(await textsOf({ user_id: ada.id, conditions }), [])
  assert.deepEqual(await textsOf({ role: 'signed_in' }), [])
  assert.deepEqual(await textsOf({ role: 'anonymous' }), 'permission_denied')
  const { body } = await see({ user_id: ada.id })
  assert.deepEqual(
    [body.database_role, body.claims],
    [
      roles.member,
      {
        user_id: ada.id,
        session_id: null,
        role: 'user',
        organization_id: null,
        organization_role: null,
        two_factor: false,
        impersonated_by: null,
        is_anonymous: false,
      },
    ],
  )
  const visitor = await see({ role: 'anonymous' })
  assert.deepEqual(
    [visitor.body.database_role, visitor.body.claims, visitor.body.data, visitor.body.refused.code],
    [roles.anon, {}, [], 'permission_denied'],
  )
})

test('a member sees the rows of an organization that is named, and nobody those of another', async () => {
  await createTable('memo', [TEXT, ORGANIZATION])
  await secured('memo', [{ preset: 'organization' }])
  const [owner, member, other] = [await createPerson(t), await createPerson(t), await createPerson(t)]
  const { id } = await createOrganization(t, [
    [owner, 'owner'],
    [member, 'member'],
  ])
  await coherence.settle()
  await insert(admin, 'memo', { text: 'ours', organization_id: id })
  const memo = (asked: Asked) => textsOf({ table_name: 'memo', ...asked })
  assert.deepEqual(await memo({ user_id: member.id, organization_id: id }), ['ours'])
  assert.deepEqual(await memo({ user_id: member.id }), [])
  const { body } = await see({ table_name: 'memo', user_id: owner.id, organization_id: id })
  assert.equal(body.claims.organization_role, 'owner')
  const stranger = await see({ table_name: 'memo', user_id: other.id, organization_id: id })
  assert.deepEqual([stranger.status, stranger.body.code], [400, 'not_a_member'])
  await db.updateTable('organization').set({ requireTwoFactor: true }).where('id', '=', id).execute()
  assert.deepEqual(await memo({ user_id: member.id, organization_id: id }), 'two_factor_required')
  assert.deepEqual(await memo({ user_id: member.id, organization_id: id, two_factor: true }), ['ours'])
  await db.deleteFrom('member').where('userId', '=', member.id).execute()
  assert.equal((await see({ user_id: member.id, organization_id: id })).body.code, 'not_a_member')
})

test('a user whom the door refuses sees nothing, and what the door asks for counts', async () => {
  const [root, banned, guarded] = [
    await operatorOf(t, 'admin'),
    await createPerson(t),
    await createPerson(t, { role: 'guarded' }),
  ]
  await root.post('/api/auth/admin/ban-user', { userId: banned.id })
  assert.equal(await textsOf({ user_id: banned.id }), 'invalid_session')
  assert.equal(await textsOf({ user_id: guarded.id }), 'two_factor_required')
  assert.deepEqual(await textsOf({ user_id: guarded.id, two_factor: true }), [])
  const { body } = await see({ user_id: guarded.id, two_factor: true })
  assert.deepEqual([body.claims.two_factor, body.claims.role], [true, 'guarded'])
})

test('who may not read every row of the table sees nobody’s', async () => {
  const asked = { user_id: ada.id }
  const [root, agent, auditor] = [
    await operatorOf(t, 'admin'),
    await operatorOf(t, 'agent'),
    await operatorOf(t, 'auditor'),
  ]
  const stale = await operatorOf(t, 'auditor', 11)
  const onApp = (token: string) => sending(t, { authorization: `Bearer ${token}`, 'x-service-client': 'app' })
  const { token: ofAdmin } = await impersonated(t, root, auditor, { parentId: root.sessionId })
  const unbound = async (rights: readonly string[]) => {
    const { apiKey } = await t.key(rights, { client_name: null })
    return actor(t.url, { apikey: apiKey, 'x-service-client': 'app' })
  }
  const { apiKey: foreign } = await t.key(['*', BYPASS])
  const callers = {
    nobody: [actor(t.url, { 'x-service-client': 'app' }), 'api_key_required'],
    'a page with a session': [adas, 'insufficient_rights'],
    'every right but that one': [await keyWith(['*', 'management.functions.write']), 'insufficient_rights'],
    'that right alone': [await keyWith([BYPASS]), 'insufficient_rights'],
    'another table': [await keyWith([BYPASS, 'memo.read']), 'insufficient_rights'],
    'another client': [
      actor(t.url, { apikey: foreign, 'x-service-client': 'app' }),
      'api_key_client_mismatch',
    ],
    'both rights': [await keyWith([BYPASS, 'todo.read']), 200],
    'both, of no client': [await unbound([BYPASS, 'todo.read']), 200],
    'the admin key': [actor(t.url, { ...t.admin.headers, 'x-service-client': 'app' }), 200],
    'a support agent': [onApp(agent.token), 'insufficient_rights'],
    'an auditor': [onApp(auditor.token), 200],
    'an auditor without a recent proof': [onApp(stale.token), 'session_not_fresh'],
    'an admin as the auditor': [onApp(ofAdmin), 'not_while_impersonating'],
    'an admin': [onApp(root.token), 200],
  } as const
  const before = (await trail()).length
  for (const [name, [who, expected]] of Object.entries(callers)) {
    const answer = await see(asked, who)
    assert.equal(answer.body.code ?? answer.status, expected, `${name}: ${answer.text}`)
    if (expected !== 200) assert.ok(!answer.text.includes('"a1"'), name)
  }
  const seen = Object.values(callers).filter(([, expected]) => expected === 200).length
  assert.equal((await trail()).length, before + seen, 'only what was seen is in the trail')
})

test('a view, which may read any table, needs a right to SQL besides, and a relation its own right', async () => {
  const asked = { table_name: 'mine', user_id: ada.id }
  const narrow = await see(asked, await keyWith([BYPASS, 'mine.read', 'todo.read']))
  assert.deepEqual([narrow.status, narrow.body.code], [403, 'insufficient_rights'])
  const wide = await see(asked, await keyWith([BYPASS, 'mine.read', 'gateway.query.read']))
  assert.deepEqual(wide.body.data, [{ text: 'a1' }, { text: 'a2' }], wide.text)
  await createTable('step', [
    TEXT,
    USER,
    { name: 'todo_id', data_type: 'bigint', references: { table: 'todo', column: 'id' } },
  ])
  await secured('step', [{ preset: 'owner' }])
  const related = { table_name: 'step', columns: ['text', 'todo(text)'], user_id: ada.id }
  assert.equal((await see(related, await keyWith([BYPASS, 'step.read']))).status, 403)
  assert.equal((await see(related, await keyWith([BYPASS, 'step.read', 'todo.read']))).status, 200)
})

test('nothing is written, whatever a view or a policy calls', async () => {
  const answer = await see({ table_name: 'noting', user_id: ada.id })
  assert.deepEqual([answer.status, answer.body.code], [403, 'read_only'])
  assert.deepEqual(await sql('select * from noted'), [])
})

test('the trail has the actor, the user and the table, also of a look that was refused the user', async () => {
  const auditor = await operatorOf(t, 'auditor')
  const onApp = actor(t.url, {
    ...OPERATE,
    'x-service-client': 'app',
    authorization: `Bearer ${auditor.token}`,
  })
  assert.equal((await see({ user_id: ada.id }, onApp)).status, 200)
  assert.equal((await see({ role: 'anonymous' }, onApp)).status, 200)
  assert.equal((await see({ user_id: ada.id.toUpperCase() }, onApp)).status, 200)
  const seen = { actorId: auditor.id, targetType: 'user', clientName: 'app', organizationId: null }
  assert.deepEqual((await trail()).slice(-3), [
    { ...seen, targetId: ada.id, details: { table: 'public.todo' } },
    { ...seen, targetId: null, details: { table: 'public.todo', role: 'anonymous' } },
    { ...seen, targetId: ada.id, details: { table: 'public.todo' } },
  ])
})

test('a look is bounded, names one subject, and exists only where policies do', async () => {
  const unknown = '01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6'
  const refused = [
    [{ user_id: ada.id, limit: 101 }, 'validation_error'],
    [{}, 'validation_error'],
    [{ user_id: ada.id, role: 'anonymous' }, 'validation_error'],
    [{ role: 'anonymous', organization_id: unknown }, 'validation_error'],
    [{ role: 'postgres' }, 'validation_error'],
    [{ user_id: unknown }, 'user_not_found'],
    [{ user_id: ada.id, table_name: 'nothing' }, 'table_not_found'],
    [{ user_id: ada.id, columns: ['nothing'] }, 'unknown_column'],
    [{ user_id: ada.id, colums: ['text'] }, 'validation_error'],
  ] as const
  const before = (await trail()).length
  for (const [asked, code] of refused) {
    const { body, text } = await see(asked)
    assert.equal(body.code, code, text)
  }
  const plain = await testService()
  const key = await plain.key(['*', BYPASS])
  assert.equal((await see({ role: 'anonymous' }, key)).body.code, 'row_level_security_off')
  assert.equal((await trail()).length, before)
})

test('during a ban, a new role and a lost one, each look is whole or refused, and later ones are refused', async () => {
  for (let round = 0; round < 6; round++) {
    const [root, auditor] = [await operatorOf(t, 'admin'), await operatorOf(t, 'auditor')]
    const user = await t.signUp(`user${round}`)
    await insert(beas, 'todo', { text: 'of all' })
    const onApp = sending(t, { authorization: `Bearer ${auditor.token}`, 'x-service-client': 'app' })
    const [ban, role, ...looks] = await Promise.all([
      root.post('/api/auth/admin/ban-user', { userId: user.id }),
      root.post('/api/auth/admin/set-role', { userId: auditor.id, role: 'agent' }),
      ...Array.from({ length: 6 }, () => see({ user_id: user.id }, onApp)),
    ])
    assert.deepEqual([ban.status, role.status], [200, 200])
    for (const { status, body, text } of looks)
      assert.ok(
        (status === 200 && (body.refused === null || body.refused.code === 'invalid_session')) ||
          (status === 403 && body.code === 'insufficient_rights'),
        text,
      )
    assert.equal((await see({ user_id: user.id }, onApp)).body.code, 'insufficient_rights')
    assert.equal(await textsOf({ user_id: user.id }), 'invalid_session')
    const told = (await trail()).filter(({ actorId }) => actorId === auditor.id)
    assert.equal(told.length, looks.filter(({ status }) => status === 200).length)
  }
})
