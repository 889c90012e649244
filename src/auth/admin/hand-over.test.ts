import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, testService } from '#test/harness.ts'
import { createPerson, type Person } from '#test/organizations.ts'
import { setRoleByOperator } from './operator.ts'

const ROLES = {
  auditor: { audit: ['list'] },
  editor: { user: ['update'] },
  support: { user: ['update', 'set-email', 'set-password'] },
}
const t = await testService({ config: { auth: { admin: { roles: ROLES } } } })
const { kernel } = t.service
const { db } = kernel
const DAY = 86_400_000

const post = async (who: Actor, path: string, body: object) => {
  const answer = await who.post(`/api/auth/admin/${path}`, body)
  return answer.status === 200 ? 200 : `${answer.status} ${answer.body.code}`
}
/** The verbs with which an account becomes another person's. */
const HAND_OVER: Readonly<Record<string, (who: Actor, userId: string) => Promise<number | string>>> = {
  email: (who, userId) => post(who, 'update-user', { userId, data: { email: `x-${userId}@example.com` } }),
  emailVerified: (who, userId) => post(who, 'update-user', { userId, data: { emailVerified: false } }),
  password: (who, userId) => post(who, 'set-user-password', { userId, newPassword: 'a password of mine' }),
}
const REFUSED = '403 YOU_CANNOT_IMPERSONATE_ADMINS'
const setRole = (who: Actor, userId: string, role: string) => post(who, 'set-role', { userId, role })
const rowOf = ({ id }: Person) =>
  db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
const outcomes = async (who: Actor, { id }: Person) => {
  const all: (number | string)[] = []
  for (const verb of Object.values(HAND_OVER)) all.push(await verb(who, id))
  return new Set(all)
}

test('an admin hands over neither the address nor the password of a user with any admin permission, and no mail goes out', async () => {
  const admin = await createPerson(t, { role: 'admin' })
  for (const role of ['admin', 'auditor', 'user,auditor']) {
    const other = await createPerson(t, { role })
    const before = await rowOf(other)
    assert.deepEqual(await outcomes(admin, other), new Set([REFUSED]), role)
    assert.deepEqual(await rowOf(other), before)
    assert.equal((await other.get('/api/auth/get-session')).status, 200)
    assert.deepEqual(await t.mails(), [])
    assert.equal(await post(admin, 'update-user', { userId: other.id, data: { name: 'Renamed' } }), 200)
  }
})

test('a plain user is handed over', async () => {
  const [admin, user] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  assert.deepEqual(await outcomes(admin, user), new Set([200]))
})

test('a demotion does not come before: for seven days a former admin is not handed over, whoever has demoted them', async () => {
  const admin = await createPerson(t, { role: 'admin' })
  const demotions: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    'set-role': (id) => setRole(admin, id, 'user'),
    'another role with less': async (id) => {
      await setRole(admin, id, 'editor')
      await setRole(admin, id, 'user')
    },
    'the command line': (id) => setRoleByOperator(kernel, id, 'user'),
  }
  for (const [name, demote] of Object.entries(demotions)) {
    const other = await createPerson(t, { role: 'admin' })
    await demote(other.id)
    assert.deepEqual(await outcomes(admin, other), new Set([REFUSED]), name)
    assert.equal(await setRole(admin, other.id, 'admin'), 200)
    assert.equal((await other.get('/api/auth/get-session')).status, 200, 'nothing has ended the session')
  }
  const other = await createPerson(t, { role: 'admin' })
  await setRole(admin, other.id, 'user')
  t.advance(6 * DAY)
  const later = await createPerson(t, { role: 'admin' })
  assert.deepEqual(await outcomes(later, other), new Set([REFUSED]))
  t.advance(DAY + 1_000)
  const muchLater = await createPerson(t, { role: 'admin' })
  assert.deepEqual(await outcomes(muchLater, other), new Set([200]))
})

test('a user who gains a role is no former admin', async () => {
  const [admin, user] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  assert.equal(await setRole(admin, user.id, 'user'), 200)
  assert.deepEqual(await outcomes(admin, user), new Set([200]))
})

test('update-user takes an address only from who may set one, and create-user too', async () => {
  const [editor, support, user] = [
    await createPerson(t, { role: 'editor' }),
    await createPerson(t, { role: 'support' }),
    await createPerson(t),
  ]
  const refused = '403 YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL'
  const data = { name: 'Named', emailVerified: true }
  assert.equal(await post(editor, 'update-user', { userId: user.id, data }), refused)
  assert.equal((await rowOf(user)).name, 'Ada', 'all or nothing')
  assert.equal(await post(editor, 'update-user', { userId: user.id, data: { name: 'Named' } }), 200)
  assert.equal(await post(support, 'update-user', { userId: user.id, data }), 200)
  for (const field of ['role', 'banned', 'twoFactorEnabled', 'id', 'password', 'emailProvenAt'])
    assert.equal(
      await post(support, 'update-user', { userId: user.id, data: { [field]: 'x' } }),
      '400 VALIDATION_ERROR',
      field,
    )
  const asks = async (who: Person) =>
    (await who.post('/api/auth/admin/has-permission', { permissions: { user: ['set-email'] } })).body.success
  assert.deepEqual([await asks(editor), await asks(support)], [false, true])
})

test('with allow_impersonating_admins admins hand over each other', async () => {
  const auth = { admin: { allow_impersonating_admins: true } }
  const allowing = await testService({ controlUrl: t.controlUrl, config: { auth } })
  const [admin, other] = [await createPerson(t, { role: 'admin' }), await createPerson(t, { role: 'admin' })]
  const headers = { authorization: `Bearer ${admin.token}` }
  const body = { userId: other.id, newPassword: 'a password of mine' }
  const answer = await allowing.anon.post('/api/auth/admin/set-user-password', body, { headers })
  assert.equal(answer.status, 200, answer.text)
})
