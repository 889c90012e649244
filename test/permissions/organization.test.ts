import { test } from 'node:test'
import { type Actor, testService } from '#test/harness.ts'
import {
  createInvitation,
  createOrganization,
  createPerson,
  type Organization,
  type Person,
} from '#test/organizations.ts'
import { impersonated } from './impersonated.ts'
import { type Expected, expectEveryRoute, expectMatrix, type Matrix, type Row } from './matrix.ts'

/** `invited`: no member, and an invitation is for this user's address. `banned` and `impersonated` are owners. */
type Role = 'anon' | 'stranger' | 'invited' | 'member' | 'admin' | 'owner' | 'banned' | 'impersonated'

/** An organization of its own for each cell, whose actions change it. */
type Scene = {
  readonly who: Actor
  readonly organization: Organization
  /** A second owner, so that the first one may go. */
  readonly other: Person
  /** A member. */
  readonly target: Person
  readonly invitationId: string
  readonly unique: string
}
type Request = (scene: Scene) => Readonly<Record<string, unknown>>

const t = await testService()
const { kernel } = t.service

const SIGN_IN: Expected = [401, 'UNAUTHORIZED']
const STRANGER: Expected = [403, 'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION']
const IMPERSONATING: Expected = [403, 'NOT_WHILE_IMPERSONATING']
const GONE: Expected = [400, 'INVITATION_NOT_FOUND']
const may = (code: string): Expected => [403, `YOU_ARE_NOT_ALLOWED_TO_${code}`]

const CLOSED = { anon: SIGN_IN, banned: SIGN_IN }
const ALL = { stranger: 200, invited: 200, member: 200, admin: 200, owner: 200 } as const
const MEMBERS = { stranger: STRANGER, invited: STRANGER, member: 200, admin: 200, owner: 200 } as const

/** A read, which an impersonated session may do as the user. */
const reads = (
  request: Request,
  expected: Omit<Row<Role, Request>['expected'], 'anon' | 'banned' | 'impersonated'>,
) => ({
  request,
  expected: { ...CLOSED, ...expected, impersonated: expected.owner },
})
const writes = (
  request: Request,
  expected: Omit<Row<Role, Request>['expected'], 'anon' | 'banned' | 'impersonated'>,
) => ({
  request,
  expected: { ...CLOSED, ...expected, impersonated: IMPERSONATING },
})

const byId: Request = ({ organization }) => ({ organizationId: organization.id })
const invitation: Request = ({ invitationId }) => ({ invitationId })

const MATRIX: Matrix<Role, Request> = {
  'POST /organization/create': writes(({ unique }) => ({ name: 'New', slug: unique }), ALL),
  'POST /organization/update': writes((scene) => ({ ...byId(scene), data: { name: 'New' } }), {
    ...MEMBERS,
    member: may('UPDATE_THIS_ORGANIZATION'),
  }),
  'POST /organization/delete': writes(byId, {
    ...MEMBERS,
    member: may('DELETE_THIS_ORGANIZATION'),
    admin: may('DELETE_THIS_ORGANIZATION'),
  }),
  'POST /organization/set-active': reads(byId, MEMBERS),
  'GET /organization/get-organization': reads(byId, MEMBERS),
  'GET /organization/get-full-organization': reads(byId, MEMBERS),
  'GET /organization/list': reads(() => ({}), ALL),
  'POST /organization/check-slug': reads(({ unique }) => ({ slug: unique }), ALL),
  'POST /organization/has-permission': reads(
    (scene) => ({ ...byId(scene), permissions: { organization: ['delete'] } }),
    MEMBERS,
  ),
  'GET /organization/get-active-member': reads(() => ({}), {
    ...MEMBERS,
    stranger: [400, 'NO_ACTIVE_ORGANIZATION'],
    invited: [400, 'NO_ACTIVE_ORGANIZATION'],
  }),
  'GET /organization/get-active-member-role': reads(byId, MEMBERS),
  'GET /organization/list-members': reads(byId, MEMBERS),
  'POST /organization/remove-member': writes(
    (scene) => ({ ...byId(scene), memberIdOrEmail: scene.target.email }),
    { ...MEMBERS, member: may('DELETE_THIS_MEMBER') },
  ),
  'POST /organization/update-member-role': writes(
    (scene) => ({ ...byId(scene), memberId: scene.organization.memberIds.get(scene.target), role: 'admin' }),
    { ...MEMBERS, member: may('UPDATE_THIS_MEMBER') },
  ),
  'POST /organization/leave': writes(byId, MEMBERS),
  'POST /organization/invite-member': writes(
    (scene) => ({ ...byId(scene), email: `${scene.unique}@example.com`, role: 'member' }),
    { ...MEMBERS, member: may('INVITE_USERS_TO_THIS_ORGANIZATION') },
  ),
  'POST /organization/cancel-invitation': writes(invitation, {
    ...MEMBERS,
    stranger: GONE,
    invited: GONE,
    member: may('CANCEL_THIS_INVITATION'),
  }),
  'POST /organization/accept-invitation': writes(invitation, {
    ...{ stranger: GONE, invited: 200, member: GONE, admin: GONE, owner: GONE },
  }),
  'POST /organization/reject-invitation': writes(invitation, {
    ...{ stranger: GONE, invited: 200, member: GONE, admin: GONE, owner: GONE },
  }),
  'GET /organization/get-invitation': reads(({ invitationId }) => ({ id: invitationId }), {
    ...{ stranger: GONE, invited: 200, member: GONE, admin: 200, owner: 200 },
  }),
  'GET /organization/list-invitations': reads(byId, {
    ...MEMBERS,
    member: may('INVITE_USERS_TO_THIS_ORGANIZATION'),
  }),
  'GET /organization/list-user-invitations': reads(() => ({}), ALL),
}

test('every organization endpoint answers every role as listed', async () => {
  const support = await createPerson(t, { role: 'admin' })
  await expectMatrix(MATRIX, async (role, { method, path }, request) => {
    const scene = await sceneOf(role, support)
    const asked = request(scene)
    const url = `/api/auth${path}`
    if (method === 'POST') return scene.who.post(url, asked)
    return scene.who.get(`${url}?${new URLSearchParams(asked as Record<string, string>)}`)
  })
})

test('every organization endpoint is in the table', () => expectEveryRoute(t, '/organization/', MATRIX))

async function sceneOf(role: Role, support: Person): Promise<Scene> {
  const [me, other, target] = [await createPerson(t), await createPerson(t), await createPerson(t)]
  const held = role === 'banned' || role === 'impersonated' ? 'owner' : role
  const isMember = held === 'member' || held === 'admin' || held === 'owner'
  const own = isMember ? [[me, held] as const] : []
  const organization = await createOrganization(t, [...own, [other, 'owner'], [target, 'member']])
  const to = role === 'invited' ? me.email : 'someone@example.com'
  const invitationId = await createInvitation(t, organization, { from: other, to })
  const who = await callerOf(role, me, support, organization)
  return { who, organization, other, target, invitationId, unique: `s-${me.id}` }
}

async function callerOf(role: Role, me: Person, support: Person, organization: Organization): Promise<Actor> {
  if (role === 'anon') return t.anon
  if (role === 'banned') {
    await kernel.db.updateTable('user').set({ banned: true }).where('id', '=', me.id).execute()
    await kernel.coherence.settle()
  }
  if (role !== 'impersonated') return me
  const session = await impersonated(t, support, me, { parentId: support.sessionId })
  await kernel.db
    .updateTable('session')
    .set({ activeOrganizationId: organization.id })
    .where('impersonatedBy', '=', support.id)
    .where('userId', '=', me.id)
    .execute()
  await kernel.coherence.settle()
  return session
}
