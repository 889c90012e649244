import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { testKernel } from '#test/harness.ts'
import { atomically } from '../kernel.ts'
import { uuidv7 } from '../random.ts'
import { type Act, recordAct } from './record-act.ts'

const kernel = await testKernel()
const { db, now, random } = kernel
const DAY = 86_400_000

const ban = (more: Partial<Act> = {}) =>
  recordAct(kernel, 'user.banned', { targetId: uuidv7(now(), random), ...more })
const rows = () => db.selectFrom('auditEvent').selectAll().orderBy('id').execute()

test('an act that is rolled back leaves no row', async () => {
  const before = await rows()
  const undone = atomically(kernel, async (kernel) => {
    await recordAct(kernel, 'user.banned', { targetId: uuidv7(now(), random) })
    throw new Error('undone')
  })
  await assert.rejects(undone, /undone/)
  assert.deepEqual(await rows(), before)
})

test('no statement changes or deletes a row of the audit trail', async () => {
  await ban()
  const before = await rows()
  for (const statement of [
    sql`delete from service.audit_event`,
    sql`truncate service.audit_event`,
    sql`update service.audit_event set actor_id = 'system'`,
    sql`update service.audit_event set count = count + 1`,
    sql`update service.audit_event set ip_address = null, user_agent = null`,
    sql`insert into service.audit_event select * from service.audit_event on conflict (id) do update set count = 9`,
    sql`with gone as (delete from service.audit_event returning *) select * from gone`,
    sql`merge into service.audit_event a using service.audit_event b on a.id = b.id when matched then delete`,
  ])
    await assert.rejects(statement.execute(db), { code: '42501' })
  assert.deepEqual(await rows(), before)
})

test('pruning deletes rows by age, and clears address and user agent after 90 days', async () => {
  const aged = async (days: number) => {
    const then = new Date(now().getTime() - days * DAY)
    const origin = { actorId: 'system', ipAddress: '192.0.2.1', userAgent: 'curl' }
    await recordAct({ ...kernel, now: () => then, origin }, 'user.banned', { targetId: `${days}` })
  }
  for (const days of [500, 399, 91, 89]) await aged(days)
  const prune = (days: number) =>
    sql`select service.prune_audit_events(make_interval(days => ${days}::int), 1000)`.execute(db)
  const left = async () =>
    (await rows())
      .filter(({ targetId }) => /^\d+$/.test(targetId ?? ''))
      .map((row) => [row.targetId, row.ipAddress, row.userAgent])
  await prune(400)
  assert.deepEqual(await left(), [
    ['399', null, null],
    ['91', null, null],
    ['89', '192.0.2.1', 'curl'],
  ])
  await aged(29)
  await prune(0)
  assert.deepEqual(await left(), [['29', '192.0.2.1', 'curl']], 'the last 30 days stay')
})
