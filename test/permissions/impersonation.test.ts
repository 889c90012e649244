import assert from 'node:assert/strict'
import { test } from 'node:test'
import { banByOperator, setRoleByOperator } from '#auth/admin/operator.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { PASSWORD, testService, type User } from '#test/harness.ts'
import { impersonated, sessionIdOf } from './impersonated.ts'

const t = await testService({
  config: { auth: { ...EVERY_FEATURE, admin: { roles: { support: { user: ['impersonate'] } } } } },
})
const { kernel } = t.service
const [root, ada, bea] = [await t.signUp('Root'), await t.signUp('Ada'), await t.signUp('Bea')]
await setRoleByOperator(kernel, root.id, 'admin')
await setRoleByOperator(kernel, ada.id, 'admin')

/** Every route of the surface that an impersonated session may use. */
const OPEN = [
  'GET /admin/list-permissions',
  // A way in, like the sign-in routes. It links accounts only in the session that has begun to, and that is never an impersonated one.
  'GET /callback/provider',
  'GET /get-session',
  'GET /list-accounts',
  'GET /list-sessions',
  'GET /organization/get-active-member',
  'GET /organization/get-active-member-role',
  'GET /organization/get-full-organization',
  'GET /organization/get-invitation',
  'GET /organization/get-organization',
  'GET /organization/list',
  'GET /organization/list-invitations',
  'GET /organization/list-members',
  'GET /organization/list-user-invitations',
  'GET /passkey/list-user-passkeys',
  'POST /admin/has-permission',
  'POST /admin/stop-impersonating',
  'POST /get-session',
  'POST /organization/check-slug',
  'POST /organization/has-permission',
  'POST /organization/set-active',
  'POST /sign-out',
  'POST /update-user',
]

const begin = async (admin: User, user: User) =>
  impersonated(t, admin, user, { parentId: await sessionIdOf(admin) })
const status = async (who: { get(path: string): Promise<{ status: number }> }) =>
  (await who.get('/api/auth/get-session')).status

test('an impersonated session may use the named routes, and gets 403 on all others that know a session', async () => {
  const routes = t.service.book
    .entries()
    .filter(({ surface, access }) => surface === 'auth' && access !== 'open')
    .map(({ method, path }) => ({ method, path: path.replace('{', '').replace('}', '') }))
  const open: string[] = []
  for (const { method, path } of routes) {
    const session = await begin(ada, bea)
    const answer = await session.send(method, path, method === 'GET' ? {} : { body: {} })
    if (answer.body?.code === 'NOT_WHILE_IMPERSONATING') assert.equal(answer.status, 403)
    else open.push(`${method} ${path.replace('/api/auth', '')}`)
  }
  assert.deepEqual(open.toSorted(), OPEN)
})

test('an impersonated session tells who acts, changes name and image, and changes no username', async () => {
  const session = await begin(ada, bea)
  const shown = await session.get('/api/auth/get-session')
  assert.equal(shown.body.session.impersonatedBy, ada.id)
  assert.equal(shown.body.user.id, bea.id)
  assert.equal((await session.post('/api/auth/update-user', { name: 'Beatrix' })).status, 200)
  const refused = await session.post('/api/auth/update-user', { name: 'B', username: 'beatrix' })
  assert.deepEqual([refused.status, refused.body.code], [403, 'NOT_WHILE_IMPERSONATING'])
  const { body } = await bea.get('/api/auth/get-session')
  assert.deepEqual([body.user.name, body.user.username], ['Beatrix', null])
  assert.equal(body.session.impersonatedBy, null)
})

test('an impersonated session ends at once with the session of the admin, which may sign out while it is in use', async () => {
  const signedIn = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  const headers = { headers: { authorization: `Bearer ${signedIn.body.token}` } }
  const { body } = await t.anon.get('/api/auth/get-session', headers)
  const session = await impersonated(t, ada, bea, { parentId: body.session.id })
  assert.equal(await status(session), 200)
  assert.equal((await t.anon.post('/api/auth/sign-out', {}, headers)).status, 200)
  assert.equal(await status(session), 401)
  assert.equal(await status(ada), 200)
  assert.equal(await status(bea), 200)
})

test('it ends when the admin loses the role, or the user gets more permissions than the admin', async () => {
  const cases: readonly [string, () => Promise<unknown>, () => Promise<unknown>][] = [
    [
      'demoted',
      () => setRoleByOperator(kernel, ada.id, 'user'),
      () => setRoleByOperator(kernel, ada.id, 'admin'),
    ],
    [
      'support',
      () => setRoleByOperator(kernel, ada.id, 'support'),
      () => setRoleByOperator(kernel, ada.id, 'admin'),
    ],
    [
      'promoted',
      () => setRoleByOperator(kernel, bea.id, 'admin'),
      () => setRoleByOperator(kernel, bea.id, 'user'),
    ],
  ]
  for (const [name, change, back] of cases) {
    const session = await begin(ada, bea)
    assert.equal(await status(session), 200)
    await change()
    const expected = name === 'support' ? 200 : 401
    assert.equal(await status(session), expected, name)
    await back()
    assert.equal(await status(session), expected, `${name} and back`)
  }
})

test('it ends with a ban of either side', async () => {
  for (const banned of ['admin', 'user'] as const) {
    const [admin, user] = [await t.signUp('Admin'), await t.signUp('User')]
    await setRoleByOperator(kernel, admin.id, 'admin')
    const session = await begin(admin, user)
    assert.equal(await status(session), 200)
    await banByOperator(kernel, { admin, user }[banned].id, { reason: null, expires: null })
    assert.equal(await status(session), 401, banned)
  }
})

test('it is not extended', async () => {
  const session = await begin(ada, bea)
  t.advance(3_500_000)
  assert.equal(await status(session), 200)
  t.advance(200_000)
  assert.equal(await status(session), 401)
})
