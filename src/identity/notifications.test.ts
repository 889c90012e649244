import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { uuidv7 } from '#kernel/random.ts'
import { PASSWORD, testService, type User } from '#test/harness.ts'
import { deleteExpiredSessions, extendSession, getSession, SESSION_COLUMNS } from './sessions.ts'
import { USER_COLUMNS } from './users.ts'

const t = await testService({ config: { session: { max_per_user: 2_000 } } })
const { db, now, random } = t.service.kernel
const listener = new pg.Client({ connectionString: t.controlUrl })
await listener.connect()
after(() => listener.end())
await listener.query('listen gatehouse')
const messages: string[] = []
listener.on('notification', ({ payload = '' }) => void messages.push(payload))

type Notified = { readonly messages: number; readonly tags: readonly string[] }

/** The tags that processes are notified of during the work, in order and without barriers. A notification of ours marks the end. */
async function notified(work: () => Promise<unknown>): Promise<Notified> {
  messages.length = 0
  await work()
  const { promise, resolve } = Promise.withResolvers<void>()
  const onEnd = ({ payload }: pg.Notification) => payload === 'end' && resolve()
  listener.on('notification', onEnd)
  await sql`select pg_notify('gatehouse', 'end')`.execute(db)
  await promise
  listener.off('notification', onEnd)
  const changes = messages.filter((payload) => payload !== 'end' && !payload.startsWith('barrier '))
  const tags = changes.flatMap((payload) => payload.split(' ').slice(1))
  return { messages: changes.length, tags: tags.toSorted() }
}

const NOTHING: Notified = { messages: 0, tags: [] }
const one = (tag: string): Notified => ({ messages: 1, tags: [tag] })

const ada = await t.signUp('Ada')
const sessionOf = async ({ id }: User) =>
  db.selectFrom('session').selectAll().where('userId', '=', id).executeTakeFirstOrThrow()

/** Adds sessions of one user that end after so many milliseconds. */
async function addSessions(userId: string, count: number, endsIn: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, () => uuidv7(now(), random))
  const at = now()
  const expiresAt = new Date(at.getTime() + endsIn)
  await db
    .insertInto('session')
    .values(
      ids.map((id) => ({
        id,
        tokenHash: random(32),
        userId,
        expiresAt,
        createdAt: at,
        updatedAt: at,
        remembered: true,
      })),
    )
    .execute()
  return ids.map((id) => `session:${id}`).toSorted()
}

test('a new session, a new user and an extended session are not notified', async () => {
  assert.deepEqual(await notified(() => t.signUp('Bob')), NOTHING)
  const { id, expiresAt } = await sessionOf(ada)
  const move = (by: number) =>
    db
      .updateTable('session')
      .set({ expiresAt: new Date(expiresAt.getTime() + by), updatedAt: now() })
      .where('id', '=', id)
      .execute()
  assert.deepEqual(await notified(() => move(86_400_000)), NOTHING)
  assert.deepEqual(await notified(() => move(1_000)), one(`session:${id}`), 'an earlier end is notified')
})

test('a session that is used after a day is extended without a notification', async () => {
  t.advance(86_400_000 + 1_000)
  const before = await sessionOf(ada)
  assert.deepEqual(
    await notified(async () => assert.equal((await ada.get('/api/auth/get-session')).status, 200)),
    NOTHING,
  )
  assert.ok((await sessionOf(ada)).expiresAt > before.expiresAt)
})

test('an update without a change is not notified, and one with a change names its row', async () => {
  const { id } = await sessionOf(ada)
  const tables = [
    ['service.session', id, sql`ip_address = ip_address`, sql`ip_address = '192.0.2.1'`, `session:${id}`],
    ['service.session', id, sql`token_hash = token_hash`, sql`token_hash = 'x'`, `session:${id}`],
    ['service.user', ada.id, sql`name = name`, sql`name = 'Ada L.'`, `user:${ada.id}`],
    ['service.user', ada.id, sql`updated_at = updated_at`, sql`banned = true`, `user:${ada.id}`],
  ] as const
  for (const [table, row, same, other, tag] of tables) {
    const set = (change: typeof same) =>
      sql`update ${sql.table(table)} set ${change} where id = ${row}`.execute(db)
    assert.deepEqual(await notified(() => set(same)), NOTHING, tag)
    assert.deepEqual(await notified(() => set(other)), one(tag))
  }
  const { keyId } = await t.key(['*'])
  const { publicId } = await db
    .selectFrom('apiKey')
    .select('publicId')
    .where('id', '=', keyId)
    .executeTakeFirstOrThrow()
  const setKey = (name: string) =>
    sql`update service.api_key set name = ${name} where id = ${keyId}`.execute(db)
  assert.deepEqual(await notified(() => setKey('test')), NOTHING)
  assert.deepEqual(await notified(() => setKey('other')), one(`api_key:${publicId}`))
})

test('the pruning of expired sessions is not notified, and ending a thousand sends a few messages that name each', async () => {
  const eve = await t.signUp('Eve')
  await addSessions(eve.id, 1_000, -2 * 86_400_000)
  assert.deepEqual(await notified(() => deleteExpiredSessions(db, now(), 1_000)), NOTHING)

  const live = await addSessions(eve.id, 1_000, 60_000)
  const own = `session:${(await db.selectFrom('session').select('id').where('userId', '=', eve.id).orderBy('createdAt').executeTakeFirstOrThrow()).id}`
  const revoked = await notified(() => eve.post('/api/auth/revoke-sessions'))
  assert.deepEqual(revoked.tags, [...live, own].toSorted())
  assert.ok(revoked.messages <= 8, `${revoked.messages} messages`)
})

test('a session that is extended while expired ones are pruned stays: no process would be told of its end', async () => {
  const eve = await t.signUp('Eve')
  const { id } = await sessionOf(eve)
  await db.updateTable('session').set({ expiresAt: now() }).where('id', '=', id).execute()
  const session = await getSession(db, id)
  const { pruned } = await db.transaction().execute(async (extending) => {
    assert.ok(await extendSession(extending, session, new Date(now().getTime() + 60_000), now()))
    const pruned = deleteExpiredSessions(db, now(), 1_000)
    await Promise.race([pruned, sleep(500)])
    // Not awaited here: it might wait for this transaction.
    return { pruned }
  })
  await pruned
  assert.equal((await eve.get('/api/auth/get-session')).status, 200)
})

test('a column that no cache holds is not notified, and each that a session in memory is described by is', async () => {
  const { id } = await sessionOf(ada)
  const set = (table: string, row: string, change: string) =>
    sql`update ${sql.table(table)} set ${sql.raw(change)} where id = ${row}`.execute(db)
  const unseen = [
    'permission_lost_at = now()',
    'keeps_factor = not keeps_factor',
    'verified_by_admin = not verified_by_admin',
    'devices_ended_at = now()',
  ]
  for (const change of unseen)
    assert.deepEqual(await notified(() => set('service.user', ada.id, change)), NOTHING, change)
  assert.deepEqual(await notified(() => set('service.session', id, 'origin_session_id = id')), NOTHING)
  const { rows } = await sql<{ readonly text: string }>`
    select pg_get_triggerdef(oid) as text from pg_trigger where tgname in ('user_changed', 'member_changed')
    union all select prosrc from pg_proc where proname = 'tell_sessions'`.execute(db)
  const named = new Set(rows.flatMap(({ text }) => /'\{(.*)\}'/.exec(text)?.[1]?.split(',') ?? []))
  assert.ok(named.has('devices_ended_at') && named.has('last_active_at') && named.has('origin_session_id'))
  const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  // A process that holds an end or a time of the last extension that is too old looks again (live-sessions.ts).
  const seen = [...USER_COLUMNS, ...SESSION_COLUMNS, 'role', 'tokenHash'].filter(
    (column) => column !== 'expiresAt' && column !== 'updatedAt',
  )
  assert.deepEqual(
    [...named].filter((column) => seen.includes(camel(column))),
    [],
  )
})

test('the deletion of a user names the user and each session', async () => {
  const mallory = await t.signUp('Mallory')
  const { id } = await sessionOf(mallory)
  const { tags } = await notified(() => mallory.post('/api/auth/delete-user', { password: PASSWORD }))
  assert.deepEqual(tags, [`session:${id}`, `user:${mallory.id}`])
})

test('a member whose role changes, or who leaves, is named by the user', async () => {
  const trent = await t.signUp('Trent')
  const organization = uuidv7(now(), random)
  const member = uuidv7(now(), random)
  await sql`insert into service.organization (id, name, slug, created_at, updated_at) values (${organization}, 'O', 'o', now(), now())`.execute(
    db,
  )
  await sql`insert into service.member (id, organization_id, user_id, role, created_at) values (${member}, ${organization}, ${trent.id}, 'member', now())`.execute(
    db,
  )
  const setRole = (role: string) =>
    sql`update service.member set role = ${role} where id = ${member}`.execute(db)
  assert.deepEqual(await notified(() => setRole('member')), NOTHING)
  assert.deepEqual(await notified(() => setRole('admin')), one(`user:${trent.id}`))
  const setActive = () =>
    sql`update service.member set last_active_at = now() where id = ${member}`.execute(db)
  assert.deepEqual(await notified(setActive), NOTHING)
  assert.deepEqual(
    await notified(() => sql`delete from service.organization where id = ${organization}`.execute(db)),
    one(`user:${trent.id}`),
  )
})

test('every process is notified, whatever the search_path of the session that changes a row and the objects in it', async () => {
  const [tag = ''] = await addSessions(ada.id, 1, 86_400_000)
  await sql`create schema elsewhere`.execute(db)
  await sql`create function elsewhere.pg_notify(text, text) returns void language sql as 'select'`.execute(db)
  const byHand = new pg.Client({ connectionString: t.controlUrl })
  await byHand.connect()
  await byHand.query('set search_path = elsewhere, pg_catalog')
  const remove = () => byHand.query('delete from service.session where id = $1', [tag.split(':')[1]])
  assert.deepEqual(await notified(remove), one(tag))
  await byHand.end()

  const { rows } = await sql<{ readonly name: string }>`
    select proname as name from pg_proc where pronamespace = 'service'::regnamespace
      and not coalesce(array_to_string(proconfig, ',') like 'search_path=%', false)
      -- Those of an extension are written in C.
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e')`.execute(
    db,
  )
  assert.deepEqual(rows, [], 'functions that use the search_path of the session')
})
