import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService({ config: { auth: { user: { fields: { plan: { type: 'string' } } } } } })
const admin = await createPerson(t, { role: 'admin' })
await withClient(t.controlUrl, async (client) => {
  await client.query(
    `insert into service."user" (id, name, email, banned, created_at, updated_at)
       select gen_random_uuid(), 'Person ' || n, 'person-' || n || '@many.example', n % 100 = 0, now(), now()
       from generate_series(1, 120000) as n`,
  )
  await client.query('vacuum analyze service."user"')
})

test('a hundred thousand users are not sorted by a field without an index, unless a filter leaves fewer', async () => {
  const list = (query: string) => admin.get(`/api/auth/admin/list-users?limit=1&${query}`)
  for (const field of ['plan', 'banned', 'twoFactorEnabled', 'isAnonymous', 'banExpires']) {
    const { status, body } = await list(`sortBy=${field}`)
    assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], field)
    assert.match(body.message, new RegExp(`By ${field} at most 100000 users are sorted`))
    assert.equal((await list(`sortBy=${field}&filterField=banned&filterValue=true`)).status, 200, field)
  }
  for (const field of ['id', 'email', 'name', 'username', 'role', 'emailVerified', 'createdAt', 'updatedAt'])
    assert.equal((await list(`sortBy=${field}`)).status, 200, field)
})
