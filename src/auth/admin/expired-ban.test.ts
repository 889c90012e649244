import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService()
const { db } = t.service.kernel
const admin = await createPerson(t, { role: 'admin' })
const HOUR = 3_600_000
const NONE = { banned: false, banReason: null, banExpires: null }

const post = async (path: string, body: object) => {
  const answer = await admin.post(`/api/auth/admin/${path}`, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const banOf = ({ banned, banReason, banExpires }: typeof NONE) => ({ banned, banReason, banExpires })
const stored = async (id: string) =>
  banOf((await db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirst()) as never)
const ban = (userId: string, seconds: number) =>
  post('ban-user', { userId, banReason: 'spam', banExpiresIn: seconds })
const rowsOf = async (targetId: string) =>
  (await db.selectFrom('auditEvent').select('action').where('targetId', '=', targetId).execute()).length

/** Ada's ban is over, Bea's is not. */
async function formerAndPresent() {
  const [ada, bea] = [await t.signUp('Ada'), await t.signUp('Bea')]
  await ban(ada.id, 3_600)
  await ban(bea.id, 36_000)
  t.advance(HOUR + 1_000)
  return { ada, bea }
}

test('an expired ban is in no answer', async () => {
  const { ada, bea } = await formerAndPresent()
  const shown = async (id: string) => banOf((await admin.get(`/api/auth/admin/get-user?id=${id}`)).body)
  assert.deepEqual(await shown(ada.id), NONE)
  assert.equal((await shown(bea.id)).banned, true)
  const { body } = await admin.get(`/api/auth/admin/list-users?filterField=id&filterValue=${ada.id}`)
  assert.deepEqual(banOf(body.users[0]), NONE)
  assert.deepEqual(banOf(await post('update-user', { userId: ada.id, data: { name: 'A' } })), NONE)
  assert.deepEqual(banOf((await post('set-role', { userId: ada.id, role: 'user' })).user), NONE)
  assert.deepEqual(banOf((await post('impersonate-user', { userId: ada.id })).user), NONE)
})

test('an expired ban is in no filter and no count', async () => {
  const { ada, bea } = await formerAndPresent()
  const found = async (filterField: string, filterOperator: string, filterValue: string) => {
    const query = new URLSearchParams({ filterField, filterOperator, filterValue })
    const { body, text } = await admin.get(`/api/auth/admin/list-users?${query}`)
    assert.equal(body.total, body.users.length, text)
    const ids = new Set(body.users.map(({ id }: { id: string }) => id))
    return { ada: ids.has(ada.id), bea: ids.has(bea.id) }
  }
  const [onlyAda, onlyBea] = [
    { ada: true, bea: false },
    { ada: false, bea: true },
  ]
  const past = new Date(0).toISOString()
  assert.deepEqual(await found('banned', 'eq', 'true'), onlyBea)
  assert.deepEqual(await found('banned', 'in', 'true'), onlyBea)
  assert.deepEqual(await found('banned', 'eq', 'false'), onlyAda)
  assert.deepEqual(await found('banned', 'ne', 'true'), onlyAda)
  assert.deepEqual(await found('banned', 'not_in', 'true'), onlyAda)
  assert.deepEqual(await found('banExpires', 'gte', past), onlyBea)
  const { banExpires } = await db
    .selectFrom('user')
    .select('banExpires')
    .where('id', '=', bea.id)
    .executeTakeFirstOrThrow()
  const end = banExpires?.toISOString() ?? ''
  assert.deepEqual(await found('banExpires', 'eq', end), onlyBea)
  assert.deepEqual(await found('banExpires', 'ne', end), onlyAda)
  assert.deepEqual(await found('banExpires', 'lte', end), onlyBea)
})

test('the next sign-in clears the fields of an expired ban, and lifting one leaves no row', async () => {
  const { ada, bea } = await formerAndPresent()
  assert.equal((await stored(ada.id)).banned, true)
  const { email } = ada
  const signedIn = await t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD })
  assert.equal(signedIn.status, 200)
  assert.deepEqual(await stored(ada.id), NONE)
  await ban(ada.id, 60)
  t.advance(61_000)
  const before = await rowsOf(ada.id)
  assert.deepEqual(banOf((await post('unban-user', { userId: ada.id })).user), NONE)
  assert.deepEqual(await stored(ada.id), NONE)
  assert.equal(await rowsOf(ada.id), before)
  await post('unban-user', { userId: bea.id })
  const again = await rowsOf(bea.id)
  await post('unban-user', { userId: bea.id })
  assert.equal(await rowsOf(bea.id), again, 'a second one lifts nothing')
})
