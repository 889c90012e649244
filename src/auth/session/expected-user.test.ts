import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, testService } from '#test/harness.ts'
import { byBearer, byCookie, sending } from '#test/operators.ts'
import { createPerson } from '#test/organizations.ts'

const t = await testService()
const [root, other] = [await createPerson(t, { role: 'admin' }), await createPerson(t, { role: 'admin' })]
const origin = new URL(t.service.kernel.publicUrl()).origin
const AUTH = '/api/auth'

const expecting = (id: string) => byCookie(t, other, { origin, 'x-service-expected-user': id })
const refused = ({ status, body }: Answer) => [status, body?.code]
const sessionsOf = ({ id }: { readonly id: string }) =>
  t.service.kernel.db.selectFrom('session').select('id').where('userId', '=', id).execute()

test('a request that names its user is refused in a session of another one, on both surfaces, and nothing is done', async () => {
  const page = expecting(root.id)
  for (const answer of [
    await page.get(`${AUTH}/get-session`),
    await page.get(`${AUTH}/admin/list-users`),
    await page.post(`${AUTH}/reauthenticate`, { password: 'x' }),
    await page.post(`${AUTH}/sign-out`),
  ]) {
    assert.deepEqual(refused(answer), [409, 'ANOTHER_USER'])
    assert.ok(!answer.text.includes(other.email))
    assert.deepEqual([answer.headers.getSetCookie(), answer.headers.get('set-auth-token')], [[], null])
  }
  for (const path of ['/admin/settings', '/admin/clients', '/schema/tables', '/health'])
    assert.deepEqual(refused(await page.get(path)), [409, 'another_user'], path)
  assert.equal((await sessionsOf(other)).length, 1)
})

test('with the right user, and without the header, nothing changes', async () => {
  const page = expecting(other.id)
  assert.equal((await page.get(`${AUTH}/get-session`)).body.user.id, other.id)
  assert.equal((await page.get('/admin/settings')).status, 200)
  assert.equal((await byCookie(t, other).get(`${AUTH}/get-session`)).status, 200)
})

test('a token in a header is judged alike, also where its answer is repeated from memory', async () => {
  const { authorization = '' } = byBearer(t, other).headers
  const bare = () => t.anon.get(`${AUTH}/get-session`, { headers: { authorization } })
  for (let count = 0; count < 3; count++) assert.equal((await bare()).status, 200)
  const headers = { authorization, 'x-service-expected-user': root.id }
  assert.deepEqual(refused(await t.anon.get(`${AUTH}/get-session`, { headers })), [409, 'ANOTHER_USER'])
})

test('without a session the failure is the one that it was', async () => {
  const page = sending(t, {
    origin,
    cookie: `service-auth.console=${'A'.repeat(43)}`,
    'x-service-expected-user': root.id,
  })
  assert.deepEqual(refused(await page.get(`${AUTH}/get-session`)), [401, 'UNAUTHORIZED'])
  assert.deepEqual(refused(await page.get('/admin/settings')), [401, 'invalid_session'])
})
