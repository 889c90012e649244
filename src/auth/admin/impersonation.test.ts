import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { browser } from '#test/cookie-jar.ts'
import { withClient } from '#test/database.ts'
import { type Actor, actor, testService } from '#test/harness.ts'
import { createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { setFactor } from '#test/second-factor.ts'

const t = await testService({
  config: { auth: { admin: { roles: { support: { user: ['impersonate'] } } } } },
})
const { db } = t.service.kernel
const admin = await createPerson(t, { role: 'admin' })

const impersonate = (who: Actor, { id: userId }: { id: string }) =>
  who.post('/api/auth/admin/impersonate-user', { userId })
const stop = (who: Actor, body: object = {}) => who.post('/api/auth/admin/stop-impersonating', body)
const sessionOf = async (who: Actor) => (await who.get('/api/auth/get-session')).body
const statusOf = async (who: Actor) => (await who.get('/api/auth/get-session')).status
const withToken = (token: string) => actor(t.url, { authorization: `Bearer ${token}` })

test('by cookie the session becomes that of the user for an hour, and returns', async () => {
  const ada = await createPerson(t)
  const page = browser(t, admin)
  const begun = await impersonate(page, ada)
  assert.equal(begun.status, 200, begun.text)
  const { session, user } = begun.body
  assert.deepEqual([user.id, session.userId, session.impersonatedBy], [ada.id, ada.id, admin.id])
  assert.equal(Date.parse(session.expiresAt) - Date.parse(session.createdAt), 3_600_000)
  const kept = begun.headers.getSetCookie().find((cookie) => cookie.startsWith('service-auth.admin-session='))
  assert.match(kept ?? '', /; HttpOnly/)
  assert.equal((await sessionOf(page)).user.id, ada.id)

  const count = async () => (await db.selectFrom('session').select('id').execute()).length
  const before = await count()
  const { status, body } = await stop(page)
  assert.deepEqual([status, body.user.id, body.session.id], [200, admin.id, admin.sessionId])
  assert.equal(body.session.token, admin.token)
  assert.equal(typeof body.message, 'string')
  assert.equal(await count(), before - 1)
  assert.equal((await sessionOf(page)).user.id, admin.id)
  assert.equal(page.jar.has('service-auth.admin-session'), false)
  assert.equal(await statusOf(withToken(session.token)), 401)
  const again = await stop(page)
  assert.deepEqual([again.status, again.body.code], [400, 'YOU_ARE_NOT_IMPERSONATING_ANYONE'])
})

test('by Bearer the token of the admin stays valid, and stopping tells it only to those who have it', async () => {
  const ada = await createPerson(t)
  for (const [adminToken, id] of [
    [undefined, undefined],
    [ada.token, undefined],
    ['x', undefined],
    [admin.token, admin.id],
  ]) {
    const begun = await impersonate(admin, ada)
    assert.deepEqual(begun.headers.getSetCookie(), [])
    const { token } = begun.body.session
    assert.equal(begun.headers.get('set-auth-token'), token)
    assert.equal(await statusOf(admin), 200)
    const { status, body } = await stop(withToken(token), adminToken === undefined ? {} : { adminToken })
    assert.equal(status, 200)
    assert.deepEqual([body.user?.id, body.session?.token], [id, id && adminToken])
    assert.equal(await statusOf(withToken(token)), 401)
  }
  assert.equal(await statusOf(admin), 200)
})

test('a browser that signs out while it impersonates a user ends the session of the admin too', async () => {
  const [chief, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const page = browser(t, chief)
  const { body } = await impersonate(page, ada)
  assert.equal((await page.post('/api/auth/sign-out')).status, 200)
  assert.deepEqual([...page.jar], [])
  assert.deepEqual([await statusOf(chief), await statusOf(withToken(body.session.token))], [401, 401])
  assert.equal(await statusOf(ada), 200)
})

test('admins, oneself and banned users are not impersonated', async () => {
  const [other, support, banned] = [
    await createPerson(t, { role: 'admin' }),
    await createPerson(t, { role: 'support' }),
    await createPerson(t),
  ]
  await db.updateTable('user').set({ banned: true }).where('id', '=', banned.id).execute()
  const refused = async (who: Person, user: { id: string }) => {
    const { status, body } = await impersonate(who, user)
    return `${status} ${body.code}`
  }
  assert.equal(await refused(admin, other), '403 YOU_CANNOT_IMPERSONATE_ADMINS')
  assert.equal(await refused(admin, admin), '403 YOU_CANNOT_IMPERSONATE_ADMINS')
  assert.equal(await refused(support, other), '403 YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS')
  assert.equal(await refused(support, support), '403 YOU_CANNOT_IMPERSONATE_ADMINS')
  assert.equal(await refused(admin, support), '403 YOU_CANNOT_IMPERSONATE_ADMINS', 'any permission')
  assert.equal(await refused(admin, banned), '403 BANNED_USER')
  assert.equal(await refused(admin, { id: 'x' }), '404 USER_NOT_FOUND')
})

test('an impersonation ends none of the sessions of the user, and its end is that of the admin’s session', async () => {
  const ada = await createPerson(t)
  const { max_per_user } = t.config.session
  const token = (index: number) => Buffer.from(String(index))
  const at = t.service.kernel.now()
  await db
    .insertInto('session')
    .values(
      Array.from({ length: max_per_user - 1 }, (_, index) => ({
        ...{ id: crypto.randomUUID(), userId: ada.id, tokenHash: token(index), remembered: true },
        ...{ createdAt: at, updatedAt: at, expiresAt: new Date(at.getTime() + 86_400_000) },
      })),
    )
    .execute()
  const soon = new Date(t.service.kernel.now().getTime() + 600_000)
  await db.updateTable('session').set({ expiresAt: soon }).where('id', '=', admin.sessionId).execute()
  const { body } = await impersonate(admin, ada)
  assert.equal(await statusOf(ada), 200)
  assert.equal(await statusOf(withToken(body.session.token)), 200)
  t.advance(601_000)
  assert.equal(await statusOf(withToken(body.session.token)), 401)
})

test('for an organization that requires a second factor that of the admin counts', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const { id: organizationId } = await createOrganization(t, [[ada, 'owner']])
  await setFactor(t, ada, true)
  const begin = async () => withToken((await impersonate(root, ada)).body.session.token)
  const who = await begin()
  const activate = (one = who) => one.post('/api/auth/organization/set-active', { organizationId })
  const activeOf = async (one: Actor) => (await sessionOf(one)).session.activeOrganizationId
  assert.equal((await activate()).status, 200)
  const data = { requireTwoFactor: true }
  assert.equal((await ada.post('/api/auth/organization/update', { data })).status, 200)
  assert.deepEqual([await activeOf(who), await activeOf(ada)], [null, organizationId])
  const { status, body } = await activate()
  assert.deepEqual([status, body.code], [403, 'TWO_FACTOR_REQUIRED'])
  await setFactor(t, root, true)
  assert.equal((await activate()).body.code, 'TWO_FACTOR_REQUIRED', 'shown after it has begun')
  const later = await begin()
  assert.equal((await activate(later)).status, 200)
  assert.equal(await activeOf(later), organizationId)
})

test('an admin without a second factor any more has no organization active that requires one', async () => {
  const [root, ada] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  const { id: organizationId } = await createOrganization(t, [[ada, 'owner']])
  for (const one of [root, ada]) await setFactor(t, one, true)
  const who = withToken((await impersonate(root, ada)).body.session.token)
  const activate = () => who.post('/api/auth/organization/set-active', { organizationId })
  const activeOf = async (one: Actor) => (await sessionOf(one)).session.activeOrganizationId
  const data = { requireTwoFactor: true }
  assert.equal((await ada.post('/api/auth/organization/update', { data })).status, 200)
  assert.equal((await activate()).status, 200)
  await setFactor(t, root, false)
  assert.deepEqual([await activeOf(who), await activeOf(ada)], [null, organizationId])
  await setFactor(t, root, true)
  assert.equal((await activate()).status, 200)
  await setFactor(t, ada, false)
  assert.deepEqual(
    [await activeOf(who), await activeOf(ada)],
    [organizationId, null],
    'the own factor of each',
  )

  await who.post('/api/auth/organization/set-active', { organizationId: null })
  await withClient(t.controlUrl, async (client) => {
    await client.query('begin')
    await client.query('update service."user" set two_factor_enabled = false where id = $1', [root.id])
    const waiting = activate()
    await waitForLock(client)
    await client.query('commit')
    const { status, body } = await waiting
    assert.deepEqual([status, body.code], [403, 'TWO_FACTOR_REQUIRED'], 'judged again after the wait')
  })
  assert.equal(await activeOf(who), null)
})

test('impersonations are limited for each admin', async () => {
  const rate_limits = { enabled: true, rules: { impersonation: { requests: 2 } } }
  const limited = await testService({ controlUrl: t.controlUrl, config: { rate_limits } })
  const [root, other, ada] = [
    await createPerson(t, { role: 'admin' }),
    await createPerson(t, { role: 'admin' }),
    await createPerson(t),
  ]
  const begin = async ({ token }: Person, path = 'impersonate-user') => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await limited.anon.post(`/api/auth/admin/${path}`, { userId: ada.id }, { headers })
    return answer.status
  }
  assert.deepEqual([await begin(root), await begin(root), await begin(root)], [200, 200, 429])
  assert.deepEqual([await begin(other), await begin(root, 'list-user-sessions')], [200, 200])
})

test('an admin has at most session.max_per_user impersonations at once: the oldest ends', async () => {
  const few = await testService({ controlUrl: t.controlUrl, config: { session: { max_per_user: 2 } } })
  const [root, other] = [await createPerson(t, { role: 'admin' }), await createPerson(t, { role: 'admin' })]
  // Its clock was not turned.
  const at = (token: string) => actor(few.url, { authorization: `Bearer ${token}` })
  const begin = async ({ token }: Person, user: Person) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await few.anon.post('/api/auth/admin/impersonate-user', { userId: user.id }, { headers })
    assert.equal(answer.status, 200, answer.text)
    return at(answer.body.session.token)
  }
  const users = [await createPerson(t), await createPerson(t), await createPerson(t)] as const
  const [first, second] = [await begin(root, users[0]), await begin(root, users[1])]
  const theirs = await begin(other, users[0])
  assert.deepEqual([await statusOf(first), await statusOf(second)], [200, 200])
  const third = await begin(root, users[2])
  assert.equal(await statusOf(first), 401)
  for (const who of [second, third, theirs, at(root.token), ...users.map(({ token }) => at(token))])
    assert.equal(await statusOf(who), 200)
})

/** Until a statement waits for a transaction. */
async function waitForLock(client: pg.Client): Promise<void> {
  const waiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  while ((await client.query(waiting)).rowCount === 0) await sleep(5)
}
