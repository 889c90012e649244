import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recordAct } from '#kernel/audit/record-act.ts'
import { withOrigin } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { testService } from '#test/harness.ts'
import { setRoleByOperator } from '../admin/operator.ts'

const t = await testService()
const { kernel } = t.service
const admin = await t.signUp('Root')
await setRoleByOperator(kernel, admin.id, 'admin')
const HOUR = 3_600_000

type Event = { id: string; occurredAt: string; actorId: string; targetId: string; action: string }
const list = async (query: Readonly<Record<string, string | number>>) => {
  const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))
  const { status, body } = await admin.get(`/api/auth/admin/list-audit-events?${search}`)
  assert.equal(status, 200)
  return body as { events: Event[]; nextCursor: string | null }
}

/** `count` bans, a minute apart. */
async function bans(count: number, { actorId, targetId }: { actorId: string; targetId: string }) {
  for (let index = 0; index < count; index++) {
    await recordAct(withOrigin(kernel, { actorId }), 'user.banned', { targetId })
    t.advance(60_000)
  }
}
const newId = () => uuidv7(kernel.now(), kernel.random)

test('an admin lists who did what on whom, newest first, with address and request', async () => {
  const ada = await t.signUp('Ada')
  const changed = await ada.post('/api/auth/update-user', { name: 'Ada L' })
  const { events } = await list({ targetId: ada.id })
  assert.deepEqual(
    events.map(({ action, actorId }) => [action, actorId]),
    [
      ['user.updated', ada.id],
      ['user.signed_in', ada.id],
      ['user.created', ada.id],
    ],
  )
  assert.deepEqual(events[0], {
    id: events[0]?.id,
    occurredAt: events[0]?.occurredAt,
    actorId: ada.id,
    onBehalfOf: null,
    action: 'user.updated',
    targetType: 'user',
    targetId: ada.id,
    clientName: null,
    organizationId: null,
    ipAddress: '127.0.0.1',
    userAgent: 'node',
    requestId: changed.headers.get('x-request-id'),
    outcome: 'success',
    count: 1,
    details: { fields: ['name'] },
  })
})

test('pages follow each other without gaps or repeats while events are added', async () => {
  const [actorId, targetId] = [newId(), newId()]
  await bans(7, { actorId, targetId })
  const all = (await list({ actorId })).events.map(({ id }) => id)
  assert.equal(all.length, 7)
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<typeof list>> = await list({
      actorId,
      limit: 3,
      ...(cursor && { cursor }),
    })
    seen.push(...page.events.map(({ id }) => id))
    cursor = page.nextCursor
    await bans(1, { actorId, targetId })
  } while (cursor !== null)
  assert.deepEqual(seen, all)
})

test('events are filtered by actor, target, action and time, in any combination', async () => {
  const [actorId, targetId, otherTarget] = [newId(), newId(), newId()]
  const began = kernel.now()
  await bans(2, { actorId, targetId })
  t.advance(HOUR)
  const later = kernel.now()
  await bans(1, { actorId, targetId: otherTarget })
  const count = async (query: Readonly<Record<string, string>>) => (await list(query)).events.length
  const [from, to] = [began.toISOString(), later.toISOString()]
  assert.deepEqual(
    await Promise.all([
      count({ actorId }),
      count({ actorId, targetId }),
      count({ targetId: otherTarget, action: 'user.banned' }),
      count({ actorId, action: 'user.unbanned' }),
      count({ actorId, to }),
      count({ actorId, from: to }),
      count({ targetId, from, to }),
      count({ action: 'user.banned', from, to }),
      count({ actorId, from: '0001-01-01', to: '1969-07-20' }),
      count({ actorId, from: '1969-07-20', to: '9999-12-31T23:59:59Z' }),
    ]),
    [3, 2, 1, 0, 2, 1, 2, 2, 0, 3],
  )
})

test('only a role with audit: list may list the trail, and a malformed filter is a 400', async () => {
  const path = '/api/auth/admin/list-audit-events'
  const ada = await t.signUp('Ada')
  const refused = await ada.get(path)
  assert.deepEqual([refused.status, refused.body.code], [403, 'YOU_ARE_NOT_ALLOWED_TO_LIST_AUDIT_EVENTS'])
  assert.equal((await t.anon.get(path)).status, 401)
  for (const query of [
    'limit=0',
    'limit=501',
    'cursor=x',
    'from=yesterday',
    'to=2026-02-31',
    'from=',
    'limit=x',
  ]) {
    const { status, body } = await admin.get(`${path}?${query}`)
    assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], query)
  }
})
