import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, PASSWORD, testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { impersonated } from './impersonated.ts'
import { expectEveryRoute, expectMatrix, type Matrix, type Row } from './matrix.ts'

const t = await testService({
  config: {
    auth: {
      admin: { roles: { support: { user: ['list', 'get', 'impersonate'], session: ['list', 'revoke'] } } },
    },
  },
})

type Role = 'anon' | 'user' | 'support' | 'admin' | 'banned' | 'impersonating'

const UNAUTHORIZED = [401, 'UNAUTHORIZED'] as const
/** The code is the proof, and not the session. */
const NO_CODE = [400, 'INVALID_HANDOFF_CODE'] as const
const NO_LINK = [401, 'INVALID_TOKEN'] as const
/** Of a caller without a session, or with that of a banned user or an impersonated one. Every route but three answers so. */
const CLOSED = {
  anon: UNAUTHORIZED,
  banned: UNAUTHORIZED,
  impersonating: [403, 'NOT_WHILE_IMPERSONATING'],
} as const
const forAdmins = (code: string, support: 200 | 'refused', request: Request): Row<Role, Request> => ({
  request,
  expected: { ...CLOSED, user: [403, code], support: support === 200 ? 200 : [403, code], admin: 200 },
})
type Request = (target: Person) => object | Promise<object>
const userId: Request = ({ id }) => ({ userId: id })
const NO_ORGANIZATION = 'YOU_ARE_NOT_ALLOWED_TO_MANAGE_ORGANIZATIONS'

/** An organization of the target and of a member, who is named with an invitation too. */
async function organizationOf(target: Person) {
  const member = await createPerson(t)
  const organization = await createOrganization(t, [
    [target, 'owner'],
    [member, 'member'],
  ])
  const { id: organizationId, memberIds } = organization
  const invitationId = await createInvitation(t, organization, { from: target, to: 'guest@example.com' })
  return { organizationId, memberId: memberIds.get(member), invitationId }
}
const organization: Request = async (target) => {
  const { organizationId } = await organizationOf(target)
  return { organizationId }
}
const membership = async (target: Person) => {
  const { organizationId, memberId } = await organizationOf(target)
  return { organizationId, memberId }
}

const MATRIX: Matrix<Role, Request> = {
  'POST /admin/create-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_CREATE_USERS', 'refused', ({ id }) => ({
    email: `new-${id}@example.com`,
    password: PASSWORD,
    name: 'New',
  })),
  'GET /admin/list-users': forAdmins('YOU_ARE_NOT_ALLOWED_TO_LIST_USERS', 200, () => ({})),
  'GET /admin/get-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_GET_USER', 200, ({ id }) => ({ id })),
  'POST /admin/update-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_UPDATE_USERS', 'refused', ({ id }) => ({
    userId: id,
    data: { name: 'Other' },
  })),
  'POST /admin/set-role': forAdmins('YOU_ARE_NOT_ALLOWED_TO_CHANGE_USERS_ROLE', 'refused', ({ id }) => ({
    userId: id,
    role: 'user',
  })),
  'POST /admin/ban-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_BAN_USERS', 'refused', userId),
  'POST /admin/unban-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_BAN_USERS', 'refused', userId),
  'POST /admin/remove-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_DELETE_USERS', 'refused', userId),
  'POST /admin/set-user-password': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_SET_USERS_PASSWORD',
    'refused',
    ({ id }) => ({ userId: id, newPassword: PASSWORD }),
  ),
  'POST /admin/list-user-sessions': forAdmins('YOU_ARE_NOT_ALLOWED_TO_LIST_USERS_SESSIONS', 200, userId),
  'POST /admin/revoke-user-session': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_REVOKE_USERS_SESSIONS',
    200,
    ({ sessionId }) => ({ sessionToken: `sh_${sessionId}` }),
  ),
  'POST /admin/revoke-user-sessions': forAdmins('YOU_ARE_NOT_ALLOWED_TO_REVOKE_USERS_SESSIONS', 200, userId),
  'POST /admin/impersonate-user': forAdmins('YOU_ARE_NOT_ALLOWED_TO_IMPERSONATE_USERS', 200, userId),
  'POST /admin/exchange-handoff': {
    request: () => ({ code: 'A'.repeat(43) }),
    expected: {
      ...{ anon: NO_CODE, banned: NO_CODE, impersonating: CLOSED.impersonating },
      ...{ user: NO_CODE, support: NO_CODE, admin: NO_CODE },
    },
  },
  'POST /admin/create-first-admin': {
    request: ({ id }) => ({
      token: 'A'.repeat(43),
      name: 'Root',
      email: `root-${id}@example.com`,
      password: PASSWORD,
    }),
    expected: {
      ...{ anon: NO_LINK, banned: NO_LINK, impersonating: CLOSED.impersonating },
      ...{ user: NO_LINK, support: NO_LINK, admin: NO_LINK },
    },
  },
  'POST /admin/stop-impersonating': {
    request: () => ({}),
    expected: {
      ...{ anon: UNAUTHORIZED, banned: UNAUTHORIZED, impersonating: 200 },
      user: [400, 'YOU_ARE_NOT_IMPERSONATING_ANYONE'],
      support: [400, 'YOU_ARE_NOT_IMPERSONATING_ANYONE'],
      admin: [400, 'YOU_ARE_NOT_IMPERSONATING_ANYONE'],
    },
  },
  'GET /admin/list-user-accounts': forAdmins('YOU_ARE_NOT_ALLOWED_TO_GET_USER', 200, userId),
  'GET /admin/list-user-factors': forAdmins('YOU_ARE_NOT_ALLOWED_TO_GET_USER', 200, userId),
  'GET /admin/list-user-organizations': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
    'refused',
    userId,
  ),
  'GET /admin/list-organizations': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
    'refused',
    () => ({}),
  ),
  'GET /admin/get-organization': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
    'refused',
    organization,
  ),
  'GET /admin/list-organization-members': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
    'refused',
    organization,
  ),
  'GET /admin/list-organization-invitations': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_LIST_ORGANIZATIONS',
    'refused',
    organization,
  ),
  'POST /admin/update-organization': forAdmins(NO_ORGANIZATION, 'refused', async (target) => ({
    ...(await organization(target)),
    data: { name: 'New' },
  })),
  'POST /admin/delete-organization': forAdmins(NO_ORGANIZATION, 'refused', organization),
  'POST /admin/update-member-role': forAdmins(NO_ORGANIZATION, 'refused', async (target) => ({
    ...(await membership(target)),
    role: 'admin',
  })),
  'POST /admin/remove-member': forAdmins(NO_ORGANIZATION, 'refused', membership),
  'POST /admin/invite-member': forAdmins(NO_ORGANIZATION, 'refused', async (target) => ({
    ...(await organization(target)),
    ...{ email: `guest-${target.id}@example.com`, role: 'member' },
  })),
  'POST /admin/cancel-invitation': forAdmins(NO_ORGANIZATION, 'refused', async (target) => ({
    invitationId: (await organizationOf(target)).invitationId,
  })),
  'GET /admin/list-audit-events': forAdmins(
    'YOU_ARE_NOT_ALLOWED_TO_LIST_AUDIT_EVENTS',
    'refused',
    () => ({}),
  ),
  'GET /admin/list-permissions': {
    request: () => ({}),
    expected: {
      ...{ anon: UNAUTHORIZED, banned: UNAUTHORIZED, impersonating: 200 },
      ...{ user: 200, support: 200, admin: 200 },
    },
  },
  'POST /admin/has-permission': {
    request: () => ({ permissions: { user: ['list'] } }),
    expected: {
      ...{ anon: UNAUTHORIZED, banned: UNAUTHORIZED, impersonating: 200 },
      ...{ user: 200, support: 200, admin: 200 },
    },
  },
}

async function callerAs(role: Role): Promise<Actor> {
  if (role === 'anon') return t.anon
  if (role === 'banned') {
    const person = await createPerson(t, { role: 'admin' })
    await t.service.kernel.db.updateTable('user').set({ banned: true }).where('id', '=', person.id).execute()
    return person
  }
  if (role !== 'impersonating') return createPerson(t, { role })
  const [admin, user] = [await createPerson(t, { role: 'admin' }), await createPerson(t)]
  return impersonated(t, admin, user, { parentId: admin.sessionId })
}

const ask = (caller: Actor, { method, path }: Route, request: object): Promise<Answer> => {
  const url = `/api/auth${path}`
  return method === 'GET'
    ? caller.get(`${url}?${new URLSearchParams(Object.entries(request))}`)
    : caller.post(url, request)
}
type Route = { readonly method: string; readonly path: string }

test('every admin endpoint answers every role as the table says', async () => {
  await expectMatrix(MATRIX, async (role, route, request) =>
    ask(await callerAs(role), route, await request(await createPerson(t))),
  )
})

test('every admin endpoint is in the table', () => expectEveryRoute(t, '/admin/', MATRIX))

test('no one acts on a user who has a permission that they lack', async () => {
  const support = await createPerson(t, { role: 'support' })
  const admin = await createPerson(t, { role: 'admin' })
  for (const [route, { request, expected }] of Object.entries(MATRIX)) {
    const [method = '', path = ''] = route.split(' ')
    const namesUser = !['list-users', 'get-user', 'has-permission', 'list-permissions'].includes(
      path.slice('/admin/'.length),
    )
    if (expected.support !== 200 || !namesUser) continue
    const answer = await ask(support, { method, path }, await request(admin))
    assert.deepEqual([answer.status, answer.body.code], expected.user, route)
  }
  assert.equal((await admin.get('/api/auth/get-session')).status, 200)
})
