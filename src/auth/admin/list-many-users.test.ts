import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const MANY = 12_000

const t = await testService()
const admin = await createPerson(t, { role: 'admin' })
/** Every fourth user is unproven, every third has another role, and one of a thousand is banned. */
await withClient(t.controlUrl, async (client) => {
  await client.query(
    `insert into service."user" (id, name, email, email_verified, role, banned, created_at, updated_at)
       select gen_random_uuid(), 'Person ' || n, 'person-' || n || '@many.example', n % 4 > 0,
         case when n % 3 = 0 then 'member' else 'user' end, n % 1000 = 0, now() - n * interval '1 minute', now()
       from generate_series(1, ${MANY}) as n`,
  )
  await client.query(
    `insert into service.organization (id, name, slug, created_at, updated_at)
       select gen_random_uuid(), 'Organization ' || n, 'organization-' || n, now(), now() from generate_series(1, ${MANY}) as n`,
  )
  await client.query('analyze')
})
const ALL = MANY + 1

const list = async (query: Record<string, string>, path = 'list-users') => {
  const { status, body, text } = await admin.get(`/api/auth/admin/${path}?${new URLSearchParams(query)}`)
  assert.equal(status, 200, text)
  return body
}
const namesOf = async (query: Record<string, string>): Promise<string[]> =>
  (await list(query)).users.map(({ name }: { name: string }) => name)

test('more than ten thousand users are estimated, and counted when that is asked', async () => {
  const estimated = await list({ limit: '2' })
  assert.deepEqual([estimated.totalEstimated, estimated.users.length], [true, 2])
  assert.ok(estimated.total > 10_000)
  const counted = await list({ limit: '2', count: 'exact' })
  assert.deepEqual([counted.total, counted.totalEstimated], [ALL, false])
})

test('up to ten thousand users that fit are counted, however many there are', async () => {
  const found: readonly [Record<string, string>, number][] = [
    [{ filterField: 'emailVerified', filterValue: 'false', limit: '1' }, MANY / 4],
    [{ filterField: 'role', filterValue: 'member' }, MANY / 3],
    [{ searchValue: 'n-777' }, 11],
    [{ searchValue: 'nobody' }, 0],
  ]
  for (const [query, total] of found) {
    const body = await list(query)
    assert.deepEqual([body.total, body.totalEstimated], [total, false], JSON.stringify(query))
  }
})

test('a total never ends before the users do, and the last page makes it exact', async () => {
  const full = await list({ limit: '500', offset: `${MANY - 500}` })
  assert.ok(full.total > MANY)
  const last = await list({ limit: '500', offset: `${ALL - 7}` })
  assert.deepEqual([last.users.length, last.total, last.totalEstimated], [7, ALL, false])
  const beyond = await list({ offset: `${2 * MANY}` })
  assert.deepEqual([beyond.users, beyond.totalEstimated], [[], true])
  assert.ok(beyond.total > 10_000 && beyond.total <= 2 * MANY)
})

test('a filter by one field is sorted by another, whether few or many users fit', async () => {
  const oldest = { sortBy: 'createdAt', limit: '3' }
  assert.deepEqual(await namesOf({ filterField: 'banned', filterValue: 'true', ...oldest }), [
    'Person 12000',
    'Person 11000',
    'Person 10000',
  ])
  assert.deepEqual(
    await namesOf({ filterField: 'banned', filterValue: 'true', sortBy: 'name', limit: '2', offset: '11' }),
    ['Person 9000'],
  )
  assert.deepEqual(await namesOf({ filterField: 'role', filterValue: 'member', ...oldest }), [
    'Person 12000',
    'Person 11997',
    'Person 11994',
  ])
  assert.deepEqual(await namesOf({ filterField: 'banned', filterValue: 'false', ...oldest }), [
    'Person 11999',
    'Person 11998',
    'Person 11997',
  ])
  const byRole = await namesOf({ sortBy: 'role', sortDirection: 'desc', searchValue: 'person', limit: '2' })
  assert.deepEqual(byRole, ['Person 1', 'Person 2'])
})

test('organizations are counted in the same way', async () => {
  const estimated = await list({ limit: '1' }, 'list-organizations')
  assert.deepEqual([estimated.totalEstimated, estimated.organizations.length], [true, 1])
  assert.ok(estimated.total > 10_000)
  const exact = await list({ limit: '1', count: 'exact' }, 'list-organizations')
  assert.deepEqual([exact.total, exact.totalEstimated], [MANY, false])
  const found = await list({ searchValue: 'zation-777' }, 'list-organizations')
  assert.deepEqual([found.total, found.totalEstimated, found.organizations.length], [11, false, 11])
})

test('a count in other words is refused', async () => {
  const { status, body } = await admin.get('/api/auth/admin/list-users?count=planned')
  assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'])
})
