import assert from 'node:assert/strict'
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { outboxFolder, readOutbox } from '#kernel/mail/transports.ts'
import { testService } from '#test/harness.ts'

const t = await testService()
const DAY = 86_400_000

const countRows = async (table: 'session' | 'verification') =>
  (await t.service.kernel.db.selectFrom(table).select('userId').execute()).length

test('the recurring jobs delete expired rows in batches, and nothing else', async () => {
  const { db } = t.service.kernel
  const ada = await t.signUp('Ada')
  // More than two batches, inserted directly, because so many sign-ins would take minutes.
  await sql`
    insert into service.session (id, token_hash, user_id, expires_at, created_at, updated_at, remembered)
    select gen_random_uuid(), sha256(n::text::bytea), user_id, expires_at, created_at, updated_at, remembered
      from service.session, generate_series(1, 2500) as n`.execute(db)
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  await t.mails()
  assert.deepEqual([await countRows('session'), await countRows('verification')], [2_501, 1])

  const prune = () => Promise.all(t.service.recurring.map(({ run }) => run()))
  await prune()
  assert.deepEqual(
    [await countRows('session'), await countRows('verification')],
    [2_501, 1],
    'nothing has expired yet',
  )
  t.advance(8 * DAY)
  const bob = await t.signUp('Bob')
  await prune()
  assert.deepEqual([await countRows('session'), await countRows('verification')], [1, 0])
  assert.equal((await bob.get('/api/auth/get-session')).status, 200)
})

test('events of the audit trail are deleted after audit.keep', async () => {
  const { db } = t.service.kernel
  const addAged = (days: number) =>
    sql`insert into service.audit_event (id, occurred_at, actor_id, action, target_id, outcome, count, details)
      select service.first_id_at(at), at, 'system', 'user.banned', ${String(days)}, 'success', 1, '{}'
        from (select now() - make_interval(days => ${days}::int) as at) as aged`.execute(db)
  for (const days of [401, 399]) await addAged(days)
  await t.service.recurring.find(({ name }) => name === 'prune-audit')?.run()
  const left = await db
    .selectFrom('auditEvent')
    .select('targetId')
    .where('action', '=', 'user.banned')
    .execute()
  assert.deepEqual(left, [{ targetId: '399' }])
})

test('leases of crashed processes are deleted, leases of running processes are kept', async () => {
  const { db } = t.service.kernel
  await sql`
    insert into service.process_lease (id, expires_at)
    values (gen_random_uuid(), clock_timestamp() - interval '2 minutes'), (gen_random_uuid(), clock_timestamp() - interval '10 seconds')`.execute(
    db,
  )
  const countLeases = async () => (await sql`select id from service.process_lease`.execute(db)).rows.length
  assert.equal(await countLeases(), 3)
  await t.service.recurring.find(({ name }) => name === 'prune-leases')?.run()
  assert.equal(
    await countLeases(),
    2,
    'a lease that has just expired may belong to a process that is blocked',
  )
})

test('mails are deleted from the outbox after mail.outbox_keep, other files are kept', async () => {
  const prune = () => t.service.recurring.find(({ name }) => name === 'prune-outbox')?.run()
  const countMails = async () => (await readOutbox(t.config)).length
  const ada = await t.signUp('Ada')
  const before = await countMails()
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  await t.mails()
  await writeFile(path.join(outboxFolder(t.config), 'draft.eml'), 'To: me')
  t.advance(6 * DAY)
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  await t.mails()
  await prune()
  assert.ok((await countMails()) >= 3 && (await countMails()) <= before + 3)
  t.advance(DAY + 1_000)
  await prune()
  assert.equal(await countMails(), 2, 'the second mail, and the draft')
  t.advance(7 * DAY)
  await prune()
  assert.deepEqual(
    (await readOutbox(t.config)).map(({ id }) => id),
    ['draft'],
  )
})

test('files with similar names and folders are kept in the outbox and do not stop the deletion', async () => {
  const folder = outboxFolder(t.config)
  const ada = await t.signUp('Ada')
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  await t.mails()
  const otherFiles = [
    '00000000-0001-7000-8000-000000000000.eml',
    '00000000-0002-7-mine.eml',
    '00000000-0003-7000-8000-000000000000.eml',
  ] as const
  await mkdir(path.join(folder, otherFiles[0]))
  await writeFile(path.join(folder, otherFiles[1]), 'To: me')
  await symlink(path.join(folder, 'nowhere'), path.join(folder, otherFiles[2]))
  t.advance(8 * DAY)
  await t.service.recurring.find(({ name }) => name === 'prune-outbox')?.run()
  assert.deepEqual((await readdir(folder)).toSorted(), [...otherFiles, 'draft.eml'])
  assert.deepEqual(
    (await readOutbox(t.config)).map(({ id }) => id),
    ['00000000-0002-7-mine', 'draft'],
  )
})
