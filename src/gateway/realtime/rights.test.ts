import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { type Actor, actor } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { createSecuredTables, TEXT, USER } from '#test/secured-tables.ts'

const { t, sql, users, admin, adas, beas, stranger, keyWith, createTable, secured, insert, fetched, roles } =
  await createSecuredTables()
const operator = t.admin
const root = await createPerson(t, { role: 'admin' })
const cleo = await t.signUp('Cleo')
const userWithout = actor(t.url, { ...adas.headers, ...cleo.headers })
let count = 0

/** A new live table whose rows belong to users. */
async function ownTable(): Promise<string> {
  const table = `note_${++count}`
  await createTable(table, [USER, TEXT])
  await secured(table, [{ preset: 'owner', column: 'user_id' }])
  await live(table)
  return table
}

/** Through the gateway, which knows the table then. */
const ddl = (query: string) => ok(admin.post('/gateway/query', { query }))

async function live(table: string): Promise<void> {
  const enabled = await admin.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled: true } })
  assert.equal(enabled.status, 200, enabled.text)
}

const follow = (who: Actor, table_name: string, headers: Record<string, string> = {}, more: object = {}) =>
  openStream(`${t.url}/realtime`, {
    headers: { ...who.headers, ...headers },
    body: { tables: [{ table_name, ...more }] },
  })
const begun = async (...given: Parameters<typeof follow>): Promise<EventStream> => {
  const stream = await follow(...given)
  await stream.next('ready')
  return stream
}
const texts = (stream: EventStream, table: string) =>
  [...pageOf(stream, table).values()].map(({ text }) => String(text)).toSorted()
const ok = async (asked: Promise<{ status: number; text: string }>) => {
  const { status, text } = await asked
  assert.ok(status < 300, text)
}

test('each user is told of their own rows alone, also when a row moves from one to another', async () => {
  const table = await ownTable()
  await insert(adas, table, { text: 'of Ada' })
  const [ada, bea, all] = [await begun(adas, table), await begun(beas, table), await begun(admin, table)]
  const refused = await stranger.post('/realtime', { tables: [{ table_name: table }] })
  assert.deepEqual([refused.status, refused.body.code], [403, 'permission_denied'])
  await insert(beas, table, { text: 'of Bea' })
  assert.equal((await bea.next('change')).data.row.text, 'of Bea')
  await sql(`update ${table} set user_id = '${users.bea.id}' where text = 'of Ada'`)
  assert.equal((await ada.next('leave')).data.table, table)
  const moved = await bea.next('change')
  assert.deepEqual([moved.data.op, moved.data.row.text], ['insert', 'of Ada'])
  await sql(`insert into ${table} (user_id, text) values ('${users.ada.id}', 'last')`)
  assert.equal((await ada.next()).data.row.text, 'last')
  await eventually(() => texts(all, table).length === 3)
  assert.deepEqual([texts(ada, table), texts(bea, table)], [['last'], ['of Ada', 'of Bea']])
  assert.deepEqual(
    texts(bea, table),
    (await fetched(beas, table)).map(({ text }: { text: string }) => text).toSorted(),
  )
  // Of rows that a fetch would not return, not even the key is told.
  assert.deepEqual(
    ada.seen.map(({ name }) => name),
    ['snapshot', 'ready', 'leave', 'change'],
  )
  for (const stream of [ada, bea, all]) stream.close()
})

test('a change of a row is read for its owner alone, also when others follow the table', async () => {
  const table = await ownTable()
  await insert(adas, table, { text: 'before' })
  const [ada, bea, none] = [
    await begun(adas, table),
    await begun(beas, table),
    await begun(userWithout, table),
  ]
  const readings = () =>
    t.service.kernel.metrics
      .figures()
      .statements.keys.filter(({ key }) => key.includes(`.${table}`) && key.includes(' in'))
      .reduce((sum, { count }) => sum + count, 0)
  // United cohorts and their first batches are behind them.
  for (const [who, stream] of [
    [adas, ada],
    [beas, bea],
    [adas, ada],
    [beas, bea],
  ] as const) {
    const before = readings()
    await insert(who, table, { text: 'new' })
    assert.equal((await stream.next('change')).data.row.text, 'new')
    assert.equal(readings() - before, 1)
  }
  await sql(`update ${table} set user_id = '${users.bea.id}' where text = 'before'`)
  assert.equal((await ada.next('leave')).data.table, table)
  assert.equal((await bea.next('change')).data.row.text, 'before')
  assert.deepEqual(
    none.seen.map(({ name }) => name),
    ['snapshot', 'ready'],
  )
  for (const stream of [ada, bea, none]) stream.close()
})

test('a membership that a policy reads decides from its change on', async () => {
  await ddl(`create table team (user_id uuid, team int, primary key (user_id, team));
    alter table team enable row level security;
    create policy own on team for select to ${roles.member} using (user_id = (nullif(current_setting('request.claims', true), '')::json ->> 'user_id')::uuid);
    create table task (id int primary key, team int, text text);
    alter table task enable row level security;
    create policy of_team on task for select to ${roles.member} using (team in (select team from public.team));
    grant select on team, task to ${roles.member};
    insert into task values (1, 1, 'of the first'), (2, 2, 'of the second')`)
  await live('task')
  const ada = await begun(adas, 'task')
  assert.deepEqual(texts(ada, 'task'), [])
  await sql(`insert into team values ('${users.ada.id}', 2)`)
  const joined = await ada.next()
  assert.deepEqual(
    [joined.name, joined.data.op, joined.data.row?.text],
    ['change', 'insert', 'of the second'],
  )
  await sql(`update team set team = 1; insert into task values (3, 1, 'at the same time')`)
  await eventually(() => texts(ada, 'task').join() === 'at the same time,of the first')
  await sql('delete from team')
  await eventually(() => texts(ada, 'task').length === 0)
  assert.ok(!ada.seen.some(({ name }) => name === 'reset'))
  ada.close()
})

test('a policy that depends on what is not noted cannot be followed', async () => {
  await ddl(`create table hour (id int primary key, at timestamptz);
    alter table hour enable row level security;
    create policy past on hour for select to ${roles.member} using (at < now());
    grant select on hour to ${roles.member}`)
  await live('hour')
  const { status, body } = await adas.post('/realtime', { tables: [{ table_name: 'hour' }] })
  assert.deepEqual([status, body.code], [400, 'policy_not_live'])
})

test('a changed policy begins the stream again, under the new one', async () => {
  const table = await ownTable()
  await insert(adas, table, { text: 'of Ada' })
  const bea = await begun(beas, table)
  await secured(table, [{ preset: 'owner', column: 'user_id' }, { preset: 'public_read' }])
  await bea.next('reset')
  await bea.next('ready')
  assert.deepEqual(texts(bea, table), ['of Ada'])
  bea.close()
})

const ENDS: Readonly<Record<string, () => Promise<readonly [Actor, () => Promise<void>, object]>>> = {
  'its key is revoked': async () => {
    const key = await t.key(['*'], { client_name: 'app' })
    const end = () => ok(operator.send('DELETE', `/admin/api-keys/${key.keyId}`))
    return [
      { ...key, headers: { ...key.headers, 'x-service-client': 'app' } },
      end,
      { reason: 'key_revoked' },
    ]
  },
  'its key loses the right': async () => {
    const key = await t.key(['*'], { client_name: 'app' })
    const body = { rights: ['nothing.read'] }
    const end = () => ok(operator.send('PATCH', `/admin/api-keys/${key.keyId}`, { body }))
    return [
      { ...key, headers: { ...key.headers, 'x-service-client': 'app' } },
      end,
      { reason: 'rights_changed' },
    ]
  },
  'its key expires': async () => {
    const expires_at = new Date(t.service.kernel.now().getTime() + 60_000).toISOString()
    const key = await t.key(['*'], { client_name: 'app', expires_at })
    const end = async () => t.advance(61_000)
    return [{ ...key, headers: { ...key.headers, 'x-service-client': 'app' } }, end, { reason: 'expired' }]
  },
  'its session is signed out': async () => {
    const user = await t.signUp('Cleo')
    const end = () => ok(user.post('/api/auth/sign-out'))
    return [{ ...adas, headers: { ...adas.headers, ...user.headers } }, end, { reason: 'session_ended' }]
  },
  'its user is banned': async () => {
    const user = await t.signUp('Bob')
    const end = () => ok(root.post('/api/auth/admin/ban-user', { userId: user.id }))
    return [{ ...adas, headers: { ...adas.headers, ...user.headers } }, end, { reason: 'session_ended' }]
  },
  'its user gets another role': async () => {
    const user = await t.signUp('Dora')
    const end = () => ok(root.post('/api/auth/admin/set-role', { userId: user.id, role: 'admin' }))
    return [{ ...adas, headers: { ...adas.headers, ...user.headers } }, end, { reason: 'rights_changed' }]
  },
}

for (const [when, begin] of Object.entries(ENDS))
  test(`a stream tells nothing more and ends when ${when}`, async () => {
    const table = await ownTable()
    await sql(
      `create policy everything on ${table} for select to ${roles.anon}, ${roles.member} using (true);
        grant select on ${table} to ${roles.anon}`,
    )
    const [who, end, last] = await begin()
    const stream = await begun(who, table)
    await end()
    await sql(`insert into ${table} (text) values ('later')`)
    await stream.ended
    assert.deepEqual(stream.seen.at(-1)?.data, last)
    assert.ok(!stream.seen.some(({ name }) => name === 'change'))
  })

test('a key without the right to read is refused, whatever its session may see', async () => {
  const table = await ownTable()
  const writer = await keyWith([`${table}.write`])
  const { status, body } = await writer.post('/realtime', { tables: [{ table_name: table }] })
  assert.deepEqual([status, body.code], [403, 'insufficient_rights'])
})
