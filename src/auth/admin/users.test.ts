import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashPassword } from '#identity/passwords.ts'
import { tokenHash } from '#identity/tokens.ts'
import { type Actor, PASSWORD, testService } from '#test/harness.ts'
import { createOrganization, createPerson } from '#test/organizations.ts'

const CHIEF = '01990000-0000-7000-8000-000000000001'
const t = await testService({
  config: {
    auth: {
      admin: {
        user_ids: [CHIEF],
        roles: {
          clerk: { user: ['create', 'update', 'set-email', 'get'] },
          head: { user: ['create', 'set-role', 'get'] },
        },
      },
    },
  },
})
const { kernel } = t.service
const { db } = kernel
const admin = await createPerson(t, { role: 'admin' })
const hash = await hashPassword(kernel, PASSWORD)

const call = (who: Actor, name: string, body: object) => who.post(`/api/auth/admin/${name}`, body)
const ok = async (who: Actor, name: string, body: object) => {
  const answer = await call(who, name, body)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
const refused = async (who: Actor, name: string, body: object) => {
  const { status, body: answer } = await call(who, name, body)
  return `${status} ${answer.code}`
}
const isAlive = async (who: Actor) => (await who.get('/api/auth/get-session')).status === 200
const signIn = (email: string, password = PASSWORD) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

/** A user who has a password too. */
async function newcomer() {
  const person = await createPerson(t)
  await db
    .insertInto('account')
    .values({
      ...{ id: person.sessionId, userId: person.id, providerId: 'credential', accountId: person.id },
      ...{ password: hash, createdAt: kernel.now(), updatedAt: kernel.now() },
    })
    .execute()
  return person
}
let made = 0
const fields = () => ({ email: `made-${++made}@example.com`, password: PASSWORD, name: 'Made' })

test('an admin creates users with a role and fields, who sign in with the password', async () => {
  const asked = fields()
  const data = { username: 'Made_1', image: 'https://example.com/a.png', emailVerified: true }
  const { user } = await ok(admin, 'create-user', { ...asked, role: ['user', 'clerk'], data })
  assert.deepEqual(
    [user.email, user.role, user.username, user.displayUsername, user.emailVerified, user.image],
    [asked.email, 'user,clerk', 'made_1', 'Made_1', true, data.image],
  )
  assert.equal((await signIn(asked.email)).status, 200)
  assert.equal(await refused(admin, 'create-user', asked), '409 USER_ALREADY_EXISTS')
  assert.equal(
    await refused(admin, 'create-user', { ...fields(), data: { username: 'made_1' } }),
    '409 USERNAME_IS_ALREADY_TAKEN',
  )
  assert.equal(await refused(admin, 'create-user', { ...fields(), email: 'x' }), '400 INVALID_EMAIL')
  assert.equal(await refused(admin, 'create-user', { ...fields(), password: 'x' }), '400 PASSWORD_TOO_SHORT')
  for (const data of [{ role: 'admin' }, { banned: false }, { id: CHIEF }, { twoFactorEnabled: true }])
    assert.equal(await refused(admin, 'create-user', { ...fields(), data }), '400 VALIDATION_ERROR')
})

test('giving a role needs the permission set-role and every permission of the role', async () => {
  const [clerk, head] = [await createPerson(t, { role: 'clerk' }), await createPerson(t, { role: 'head' })]
  await ok(clerk, 'create-user', { ...fields(), data: { emailVerified: true } })
  const notRole = '403 YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE'
  assert.equal(await refused(clerk, 'create-user', { ...fields(), role: 'user' }), notRole)
  assert.equal(await refused(head, 'create-user', { ...fields(), role: 'admin' }), notRole)
  assert.equal(await refused(head, 'create-user', { ...fields(), role: 'clerk' }), notRole)
  await ok(head, 'create-user', { ...fields(), role: 'head' })
  assert.equal(
    await refused(head, 'create-user', { ...fields(), data: { emailVerified: true } }),
    '403 YOU_ARE_NOT_ALLOWED_TO_SET_USERS_EMAIL',
  )
  const person = await createPerson(t)
  for (const role of ['admin', 'clerk', 'head,clerk', ['user', 'admin']])
    assert.equal(await refused(head, 'set-role', { userId: person.id, role }), notRole)
  assert.equal(await refused(head, 'set-role', { userId: head.id, role: 'admin' }), notRole)
  assert.equal(
    await refused(admin, 'set-role', { userId: person.id, role: 'chief' }),
    '400 YOU_ARE_NOT_ALLOWED_TO_SET_NON_EXISTENT_VALUE',
  )
  const { user } = await ok(admin, 'set-role', { userId: person.id, role: 'clerk' })
  assert.equal(user.role, 'clerk')
  await ok(person, 'create-user', fields())
})

test('the trail tells the role that a new user was given', async () => {
  const { user } = await ok(admin, 'create-user', { ...fields(), role: 'clerk' })
  const { body } = await admin.get(`/api/auth/admin/list-audit-events?targetId=${user.id}`)
  const [created] = body.events
  assert.deepEqual(
    [created.action, created.actorId, created.details.role],
    ['user.created', admin.id, 'clerk'],
  )
})

test('an admin changes the fields of a user, and a new address is unproven', async () => {
  const person = await createPerson(t)
  const path = `/api/auth/admin/get-user?id=${person.id}`
  const email = `changed-${person.email}`
  const changed = await ok(admin, 'update-user', { userId: person.id, data: { name: 'Other', email } })
  assert.deepEqual([changed.name, changed.email, changed.emailVerified], ['Other', email, false])
  assert.equal(await isAlive(person), true)
  await ok(admin, 'update-user', { userId: person.id, data: { emailVerified: true } })
  assert.equal((await admin.get(path)).body.emailVerified, true)
  const update = (data: object) => refused(admin, 'update-user', { userId: person.id, data })
  assert.equal(await update({}), '400 NO_FIELDS_TO_UPDATE')
  assert.equal(await update({ email: admin.email }), '409 USER_ALREADY_EXISTS')
  for (const data of [{ role: 'admin' }, { password: 'x' }, { banned: true }])
    assert.equal(await update(data), '400 VALIDATION_ERROR')
  for (const userId of ['x', CHIEF, '']) {
    assert.equal(await refused(admin, 'update-user', { userId, data: { name: 'X' } }), '404 USER_NOT_FOUND')
    assert.equal((await admin.get(`/api/auth/admin/get-user?id=${userId}`)).body.code, 'USER_NOT_FOUND')
  }
})

test('a ban ends every session at once, keeps the user out, and lifts itself', async () => {
  const person = await newcomer()
  assert.equal(await isAlive(person), true)
  const ban = { userId: person.id, banReason: 'spam', banExpiresIn: 3_600 }
  const { user } = await ok(admin, 'ban-user', ban)
  assert.deepEqual([user.banned, user.banReason], [true, 'spam'])
  assert.equal(await isAlive(person), false)
  assert.equal((await signIn(person.email)).body.code, 'BANNED_USER')
  t.advance(3_601_000)
  assert.equal((await signIn(person.email)).status, 200)
  await ok(admin, 'ban-user', { userId: person.id })
  assert.equal((await signIn(person.email)).body.code, 'BANNED_USER')
  const lifted = await ok(admin, 'unban-user', { userId: person.id })
  assert.deepEqual([lifted.user.banned, lifted.user.banReason, lifted.user.banExpires], [false, null, null])
  assert.equal((await signIn(person.email)).status, 200)
  for (const banExpiresIn of [0, -1, 1e12, 'soon'])
    assert.equal(
      await refused(admin, 'ban-user', { userId: person.id, banExpiresIn }),
      '400 VALIDATION_ERROR',
    )
  assert.equal(await refused(admin, 'ban-user', { userId: admin.id }), '400 YOU_CANNOT_BAN_YOURSELF')
})

test('a password that an admin sets ends every session, and may have to be changed', async () => {
  const person = await newcomer()
  const newPassword = 'chosen by the admin'
  await ok(admin, 'set-user-password', { userId: person.id, newPassword })
  assert.equal(await isAlive(person), false)
  assert.equal((await signIn(person.email)).status, 401)
  assert.equal((await signIn(person.email, newPassword)).status, 200)
  await ok(admin, 'set-user-password', { userId: person.id, newPassword, mustChange: true })
  await t.mails()
  assert.equal((await signIn(person.email, newPassword)).body.code, 'PASSWORD_CHANGE_REQUIRED')
  assert.equal((await t.mails()).length, 1)
  assert.equal((await signIn(person.email, 'another wrong one')).body.code, 'INVALID_EMAIL_OR_PASSWORD')
  const short = { userId: person.id, newPassword: 'short' }
  assert.equal(await refused(admin, 'set-user-password', short), '400 PASSWORD_TOO_SHORT')
})

test('sessions of a user are listed by handles, and ended by handle, token or id', async () => {
  const person = await newcomer()
  for (let count = 0; count < 3; count++) await signIn(person.email)
  const list = async () => (await ok(admin, 'list-user-sessions', { userId: person.id })).sessions
  const sessions: { id: string; token: string; userId: string; current: boolean }[] = await list()
  assert.equal(sessions.length, 4)
  for (const { id, token, userId, current } of sessions) {
    assert.deepEqual([token, userId, current], [`sh_${id}`, person.id, false])
    assert.equal((await t.anon.get('/api/auth/get-session', bearer(token))).status, 401)
  }
  const [first, second] = sessions
  for (const sessionToken of [first?.token, second?.id, person.token])
    await ok(admin, 'revoke-user-session', { sessionToken })
  assert.equal((await list()).length, 1)
  assert.equal(await isAlive(person), false)
  for (const sessionToken of ['', 'sh_', 'nothing', first?.token])
    await ok(admin, 'revoke-user-session', { sessionToken })
  await ok(admin, 'revoke-user-sessions', { userId: person.id })
  assert.deepEqual(await list(), [])
  const own = (await ok(admin, 'list-user-sessions', { userId: admin.id })).sessions
  assert.deepEqual([own.length, own[0].token, own[0].current], [1, admin.token, true])
})
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

test('a removed user is gone with sessions and accounts, and the admin cannot remove themselves', async () => {
  const person = await newcomer()
  await ok(admin, 'remove-user', { userId: person.id })
  assert.equal(await isAlive(person), false)
  assert.equal((await signIn(person.email)).status, 401)
  assert.equal(await refused(admin, 'remove-user', { userId: person.id }), '404 USER_NOT_FOUND')
  assert.equal(await refused(admin, 'remove-user', { userId: admin.id }), '400 YOU_CANNOT_REMOVE_YOURSELF')
  const [owner, member] = [await createPerson(t), await createPerson(t)]
  await createOrganization(t, [
    [owner, 'owner'],
    [member, 'member'],
  ])
  assert.equal(await refused(admin, 'remove-user', { userId: owner.id }), '400 SOLE_OWNER_OF_ORGANIZATION')
})

test('the last admin keeps the role, is not banned and is not removed', async () => {
  assert.equal(await refused(admin, 'set-role', { userId: admin.id, role: 'user' }), '400 LAST_ADMIN')
  const other = await createPerson(t, { role: 'admin' })
  await ok(other, 'ban-user', { userId: admin.id })
  // A banned admin could lift no ban.
  assert.equal(await refused(other, 'set-role', { userId: other.id, role: 'user' }), '400 LAST_ADMIN')
  await ok(other, 'unban-user', { userId: admin.id })
  await ok(other, 'set-role', { userId: other.id, role: 'user' })
  assert.equal(
    await refused(other, 'unban-user', { userId: admin.id }),
    '403 YOU_ARE_NOT_ALLOWED_TO_BAN_USERS',
  )
})

test('a user of auth.admin.user_ids is an admin with any role', async () => {
  const chief = await createPerson(t)
  await db.deleteFrom('session').where('userId', '=', chief.id).execute()
  await db.updateTable('user').set({ id: CHIEF }).where('id', '=', chief.id).execute()
  const at = kernel.now()
  await db
    .insertInto('session')
    .values({
      ...{ id: chief.sessionId, userId: CHIEF, tokenHash: tokenHash(chief.token), remembered: true },
      ...{ createdAt: at, updatedAt: at, authTime: at, expiresAt: new Date(at.getTime() + 86_400_000) },
    })
    .execute()
  const person = await createPerson(t)
  await ok(chief, 'ban-user', { userId: person.id })
  assert.equal(
    (await ok(chief, 'has-permission', { permissions: { user: ['ban', 'delete'] } })).success,
    true,
  )
  const root = await createPerson(t, { role: 'admin' })
  await ok(root, 'set-role', { userId: admin.id, role: 'user' })
  await ok(root, 'set-role', { userId: root.id, role: 'user' })
  // One admin is left: the one of the configuration.
  assert.equal((await chief.post('/api/auth/delete-user')).body.code, 'LAST_ADMIN')
})

test('has-permission asks the same table, and ignores user and role of the request', async () => {
  const clerk = await createPerson(t, { role: 'clerk,head' })
  const asks: readonly [object, boolean][] = [
    [{ permissions: { user: ['create'] } }, true],
    [{ permission: { user: ['create', 'update'] } }, true],
    [{ permissions: { user: ['set-email'] } }, true],
    // Each by another role.
    [{ permissions: { user: ['update', 'set-role'] } }, false],
    [{ permissions: { user: ['create'], session: ['list'] } }, false],
    [{ permissions: { user: ['fly'] } }, false],
    [{ permissions: { toString: ['call'] } }, false],
    [{ permissions: { __proto__: [], constructor: ['name'] } }, false],
    [{ permissions: {} }, false],
    [{ permissions: { user: ['ban'] }, role: 'admin', userId: CHIEF }, false],
  ]
  for (const [body, success] of asks)
    assert.deepEqual(await ok(clerk, 'has-permission', body), { error: null, success }, JSON.stringify(body))
  for (const body of [{ permissions: 'x' }, {}])
    assert.equal(await refused(clerk, 'has-permission', body), '400 VALIDATION_ERROR')
})

test('an id in capitals names the same user to every verb', async () => {
  const [other, person] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const userId = person.id.toUpperCase()
  assert.equal((await other.get(`/api/auth/admin/get-user?id=${userId}`)).status, 200)
  await ok(other, 'ban-user', { userId })
  assert.equal(await isAlive(person), false)
  await ok(other, 'unban-user', { userId })
  await ok(other, 'remove-user', { userId })
})
