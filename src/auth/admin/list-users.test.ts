import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uuidv7 } from '#kernel/random.ts'
import { testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService()
const { db, random } = t.service.kernel
const admin = await createPerson(t, { role: 'admin' })
await db.updateTable('user').set({ name: 'Root' }).where('id', '=', admin.id).execute()

/** Users of the list, in the order of their creation. */
const NAMES = ['Ada', 'bea', 'Cem', 'dora', 'Eve_1', 'Eve%2', 'Fay']
const at = (index: number) => new Date(Date.UTC(2026, 0, index + 1))
await db
  .insertInto('user')
  .values(
    NAMES.map((name, index) => ({
      ...{
        id: uuidv7(at(index), random),
        name,
        email: `${name.toLowerCase().replace('%', '.')}@list.example`,
      },
      ...{ username: index < 3 ? `${name.toLowerCase()}_` : null, role: index === 1 ? 'admin,user' : 'user' },
      ...{ banned: index === 2, banExpires: index === 2 ? at(400) : null, emailVerified: index % 2 === 0 },
      ...{ createdAt: at(index), updatedAt: at(index) },
    })),
  )
  .execute()

const list = (query: Record<string, string>) =>
  admin.get(`/api/auth/admin/list-users?${new URLSearchParams(query)}`)
const namesOf = async (query: Record<string, string>): Promise<string> => {
  const { status, body, text } = await list(query)
  assert.equal(status, 200, text)
  return body.users.map(({ name }: { name: string }) => name.replace(/[_%]/, '')).join(' ')
}

test('users are searched by email and name', async () => {
  const found: readonly [Record<string, string>, string][] = [
    [{ searchValue: 'list.example' }, 'Ada bea Cem dora Eve1 Eve2 Fay'],
    [{ searchValue: 'BEA@' }, 'bea'],
    [{ searchValue: 'e', searchField: 'name', searchOperator: 'starts_with' }, 'Eve2 Eve1'],
    [{ searchValue: 'A', searchField: 'name', searchOperator: 'ends_with' }, 'Ada bea dora'],
    [{ searchValue: '%', searchField: 'name' }, 'Eve2'],
    [{ searchValue: '_', searchField: 'name', searchOperator: 'contains' }, 'Eve1'],
    [{ searchValue: 'da@', searchField: 'email', searchOperator: 'starts_with' }, ''],
  ]
  for (const [query, names] of found) assert.equal(await namesOf(query), names, JSON.stringify(query))
})

test('users are filtered by each operator', async () => {
  const within = { searchValue: 'list.example', searchOperator: 'ends_with' }
  const found: readonly [field: string, operator: string, value: string, names: string][] = [
    ['email', 'eq', 'ADA@list.example', 'Ada'],
    ['name', 'ne', 'ada', 'bea Cem dora Eve1 Eve2 Fay'],
    ['name', 'in', 'ada,fay', 'Ada Fay'],
    ['username', 'not_in', 'ada_,cem_', 'bea dora Eve1 Eve2 Fay'],
    ['username', 'starts_with', 'c', 'Cem'],
    ['role', 'contains', 'admin', 'bea'],
    ['banned', 'eq', 'true', 'Cem'],
    ['emailVerified', 'ne', 'true', 'bea dora Eve2'],
    ['createdAt', 'lt', at(1).toISOString(), 'Ada'],
    ['createdAt', 'lte', at(1).toISOString(), 'Ada bea'],
    ['updatedAt', 'gt', at(5).toISOString(), 'Fay'],
    ['banExpires', 'gte', at(0).toISOString(), 'Cem'],
  ]
  for (const [filterField, filterOperator, filterValue, names] of found) {
    const query = { ...within, filterField, filterOperator, filterValue }
    assert.equal(await namesOf(query), names, JSON.stringify(query))
  }
  const several = await admin.get(
    '/api/auth/admin/list-users?filterField=name&filterOperator=in&filterValue=ada&filterValue=fay',
  )
  assert.equal(several.body.total, 2)
})

test('a user is found by the very name, also where the server has another lower case than JavaScript', async () => {
  for (const name of ['ΝΙΚΟΣ', 'İbrahim', 'ǅ', 'Straße']) {
    const [local] = name.matchAll(/\P{ASCII}/gu).map((found) => found[0].codePointAt(0)?.toString(16))
    const { body } = await admin.post('/api/auth/admin/create-user', {
      email: `${local}@letters.example`,
      name,
      password: 'correct horse battery',
    })
    const queries: readonly Record<string, string>[] = [
      { searchField: 'name', searchValue: name },
      { searchField: 'name', searchValue: name, searchOperator: 'starts_with' },
      { searchField: 'name', searchValue: name, searchOperator: 'ends_with' },
      ...['eq', 'in', 'lte', 'gte'].map((filterOperator) => ({
        ...{ searchField: 'email', searchValue: 'letters.example' },
        ...{ filterField: 'name', filterOperator, filterValue: name },
      })),
    ]
    for (const query of queries) {
      const found = await list(query)
      assert.ok(
        found.body.users.some(({ id }: { id: string }) => id === body.user.id),
        `${name} ${JSON.stringify(query)}`,
      )
    }
  }
})

test('a page has its limit, its offset and the exact total', async () => {
  const query = {
    searchValue: 'list.example',
    sortBy: 'createdAt',
    sortDirection: 'desc',
    limit: '2',
    offset: '1',
  }
  const { body } = await list(query)
  assert.deepEqual([body.total, body.limit, body.offset], [7, 2, 1])
  assert.equal(await namesOf(query), 'Eve2 Eve1')
  assert.equal(
    await namesOf({ searchValue: 'list.example', sortBy: 'name' }),
    'Ada bea Cem dora Eve2 Eve1 Fay',
  )
  const all = await list({})
  assert.deepEqual([all.body.limit, all.body.offset, all.body.users.length], [100, 0, all.body.total])
})

test('only listed columns are sorted and filtered, by values and operators that fit', async () => {
  const refused: readonly Record<string, string>[] = [
    { sortBy: 'password' },
    { filterField: 'password', filterValue: 'x' },
    { filterField: 'image', filterValue: 'x' },
    { filterField: 'banned', filterValue: 'perhaps' },
    { filterField: 'banned', filterOperator: 'lt', filterValue: 'true' },
    { filterField: 'createdAt', filterValue: 'yesterday' },
    { filterField: 'createdAt', filterOperator: 'contains', filterValue: '2026-01-01T00:00:00Z' },
    { filterField: 'id', filterValue: 'x' },
    { filterOperator: 'like', filterValue: 'x' },
    { searchField: 'username', searchValue: 'x' },
    { limit: '501' },
    { offset: '-1' },
    { sortDirection: 'up' },
  ]
  for (const query of refused) {
    const { status, body } = await list(query)
    assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], JSON.stringify(query))
  }
})

test('a NUL character in a repeated parameter is refused', async () => {
  const { status, body } = await admin.get(
    '/api/auth/admin/list-users?filterOperator=in&filterValue=ada&filterValue=%00',
  )
  assert.deepEqual([status, body.code], [400, 'INVALID_TEXT'])
})

test('no column but those of a user leaves', async () => {
  const { body } = await list({ limit: '1' })
  assert.deepEqual(Object.keys(body.users[0]).toSorted(), [
    'banExpires', 'banReason', 'banned', 'createdAt', 'displayUsername', 'email', 'emailVerified', 'id', 'image',
    'isAnonymous', 'name', 'role', 'twoFactorEnabled', 'updatedAt', 'username',
  ]) // biome-ignore format: one line reads better
})
