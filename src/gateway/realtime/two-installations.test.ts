import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { feedOn } from '#test/changes.ts'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type EventStream, openStream, pageOf } from '#test/event-stream.ts'
import { testService } from '#test/harness.ts'

const database = await testDatabase()
const onServer = (text: string) => withClient(testServerUrl(), (one) => one.query(text))
const sql = (text: string) => withClient(database.url, async (one) => (await one.query(text)).rows)
const suffix = randomBytes(4).toString('hex')
const roles = ['anon', 'member', 'visitor', 'guest'].map((name) => `${name}_${suffix}`)
await onServer(
  `${roles.map((role) => `create role ${role} nologin`).join(';')}; grant ${roles} to "${new URL(database.url).username}"`,
)

/** A service with a control database and a secret of its own, whose client is the same database, with policies for other roles. */
async function install(anonymous_role = '', signed_in_role = '') {
  const row_level_security = { enabled: true, anonymous_role, signed_in_role }
  const t = await testService({ config: { clients: { app: { url: database.url, row_level_security } } } })
  const rights = [
    'management.*',
    'management.functions.write',
    'gateway.*',
    'gateway.bypass_row_level_security',
  ]
  const admin = await t.key(rights, { client_name: 'app' })
  const reader = await t.key(['gateway.read'], { client_name: 'app' })
  const on = (key: typeof admin) => ({ ...key.headers, 'x-service-client': 'app' })
  const enable = (table: string, enabled = true) =>
    admin.send('PUT', `/management/tables/${table}/realtime`, { body: { enabled }, headers: on(admin) })
  const opened = (headers: Record<string, string>, table_name: string, lastId = '') =>
    openStream(`${t.url}/realtime`, {
      headers: { ...headers, ...(lastId !== '' && { 'last-event-id': lastId }) },
      body: { tables: [{ table_name }] },
    })
  return {
    t,
    enable,
    opened: (table: string, lastId?: string) => opened(on(admin), table, lastId),
    /** By the policies. */
    bound: () => opened(on(reader), 'note'),
  }
}
const [first, second] = [await install(roles[0], roles[1]), await install(roles[2], roles[3])]
after(async () => {
  for (const { t } of [first, second]) await t.stop()
  await database.drop()
  await onServer(roles.map((role) => `drop role ${role}`).join(';'))
})
await sql(`create table word (id int primary key); create table note (id int primary key, text text); alter table note enable row level security;
  create table open_first (id int primary key); create table open_second (id int primary key);
  create policy one on note for select to ${roles[0]} using (id in (select id from open_first));
  create policy two on note for select to ${roles[2]} using (id in (select id from open_second));
  grant select on note, open_first to ${roles[0]}; grant select on note, open_second to ${roles[2]}`)

const ids = (stream: EventStream, table = 'note'): string =>
  [...pageOf(stream, table).keys()]
    .toSorted()
    .join()
    .replaceAll(/[^\d,]/g, '')
const ready = async (opening: Promise<EventStream>): Promise<EventStream> => {
  const stream = await opening
  await stream.next('ready')
  return stream
}

test('two installations on one database share the feed, and each tells by the policies for its own roles', async () => {
  assert.equal((await first.enable('note')).status, 200)
  const streams = [await ready(first.opened('note')), await ready(second.opened('note'))]
  const [one, two] = [await ready(first.bound()), await ready(second.bound())]
  await sql(
    'insert into note values (1), (2), (3); insert into open_first values (1); insert into open_second values (2)',
  )
  await eventually(() => streams.every((stream) => ids(stream) === '1,2,3'))
  await eventually(() => ids(one) === '1' && ids(two) === '2')
  // A stream that begins takes nothing from those that follow.
  const late = [await ready(first.bound()), await ready(second.bound())]
  await sql('insert into open_first values (3); delete from open_second')
  await eventually(() => ids(one) === '1,3' && ids(two) === '')
  assert.ok(![one, two].some(({ seen }) => seen.filter(({ name }) => name === 'reset').length > 1))
  for (const stream of [...streams, ...late, one, two]) stream.close()
})

test('a position that one has pruned begins again through the other, and a live table that one ends, ends for both', async () => {
  assert.equal((await first.enable('word')).status, 200)
  const before = await ready(second.opened('word'))
  const lastId = before.lastId() ?? assert.fail()
  before.close()
  await before.ended
  await sql('insert into word values (1)')
  // The first installation, which keeps changes for an hour, and the same two hours later.
  const { feed } = feedOn(database.url)
  await feed.prune(3_600_000)
  await sql(`update service_changes_mark set at = at - interval '2 hours'`)
  await feed.prune(3_600_000)
  const again = await ready(second.opened('word', lastId))
  assert.deepEqual([again.seen[0]?.name, again.seen[0]?.data], ['reset', { reason: 'too_old' }])
  assert.equal(ids(again, 'word'), '1')
  assert.equal((await first.enable('word', false)).status, 200)
  await again.ended
  assert.equal((await second.opened('word')).status, 400)
  assert.equal((await second.enable('word')).status, 200)
  const fresh = await ready(first.opened('word'))
  await sql('insert into word values (2)')
  await eventually(() => ids(fresh, 'word') === '1,2')
  fresh.close()
})
