import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashPassword } from '#identity/passwords.ts'
import { ACTIONS } from '#kernel/audit/actions.ts'
import { EVENTS, type EventName } from '#kernel/events.ts'
import { type Answer, PASSWORD } from '#test/harness.ts'
import { startSocialService } from '#test/identity-provider/social-service.ts'
import {
  createInvitation,
  createOrganization,
  createPerson,
  type Organization,
  type Person,
} from '#test/organizations.ts'
import { insertFactor } from '#test/second-factor.ts'

const { t, kernel, db, idToken } = await startSocialService()
const hash = await hashPassword(kernel, PASSWORD)
const at = kernel.now()
await db
  .insertInto('webhook')
  .values({
    ...{ id: crypto.randomUUID(), url: 'http://127.0.0.1:9/', clientName: null, routeKeys: ['auth.*'] },
    ...{ timeoutMs: 1_000, sealedSecret: '', sealedHeaders: '', createdAt: at, updatedAt: at },
  })
  .execute()
await kernel.coherence.settle()
// So that no admin or owner of a pair is the last one by chance.
await createPerson(t, { role: 'admin' })

type Scene = {
  readonly admin: Person
  readonly owner: Person
  /** A member of `home` who is invited to `other`. */
  readonly user: Person
  readonly home: Organization
  readonly other: Organization
  readonly invitation: string
}

async function newScene(): Promise<Scene> {
  const [admin, owner, user] = [
    await createPerson(t, { role: 'admin' }),
    await createPerson(t),
    await createPerson(t),
  ]
  const times = { createdAt: kernel.now(), updatedAt: kernel.now() }
  const credential = { providerId: 'credential', accountId: user.id, password: hash }
  await db
    .insertInto('account')
    .values({ ...times, ...credential, id: crypto.randomUUID(), userId: user.id })
    .execute()
  const other = await createOrganization(t, [[owner, 'owner']])
  const home = await createOrganization(t, [
    [owner, 'owner'],
    [user, 'member'],
  ])
  const invitation = await createInvitation(t, other, { from: owner, to: user.email })
  return { admin, owner, user, home, other, invitation }
}

type Verb = (scene: Scene) => Promise<Answer>
const auth = (who: Person, path: string, body: object = {}) => who.post(`/api/auth/${path}`, body)
const byAdmin =
  (name: string, more: object = {}): Verb =>
  ({ admin, user: { id: userId } }) =>
    auth(admin, `admin/${name}`, { userId, ...more })

const VERBS: Readonly<Record<string, Verb>> = {
  ban: byAdmin('ban-user'),
  'remove-user': byAdmin('remove-user'),
  'set-role': byAdmin('set-role', { role: 'admin' }),
  'set-user-password': byAdmin('set-user-password', { newPassword: `${PASSWORD}!` }),
  impersonate: byAdmin('impersonate-user'),
  'new address': (scene) => byAdmin('update-user', { data: { email: `moved-${scene.user.email}` } })(scene),
  'delete-user': ({ user }) => auth(user, 'delete-user', { password: PASSWORD }),
  'sign-out': ({ user }) => auth(user, 'sign-out'),
  'change-password': ({ user }) =>
    auth(user, 'change-password', {
      currentPassword: PASSWORD,
      newPassword: `${PASSWORD}?`,
      revokeOtherSessions: true,
    }),
  'sign-in': ({ user: { email } }) => t.anon.post('/api/auth/sign-in/email', { email, password: PASSWORD }),
  'social sign-in': async ({ user: { id, email } }) => {
    const token = await idToken({ sub: id, email, email_verified: true })
    return t.anon.post('/api/auth/sign-in/social', { provider: 'acme', idToken: { token } })
  },
  'link-social': async ({ user }) => {
    const token = await idToken({ sub: user.id, email: user.email, email_verified: true })
    return auth(user, 'link-social', { provider: 'acme', idToken: { token } })
  },
  disable: async ({ user }) => auth(user, 'two-factor/disable', { password: PASSWORD }),
  enable: async ({ user }) => auth(user, 'two-factor/enable', { password: PASSWORD, method: 'totp' }),
  leave: ({ user, home }) => auth(user, 'organization/leave', { organizationId: home.id }),
  'remove-member': ({ owner, user, home }) =>
    auth(owner, 'organization/remove-member', { memberIdOrEmail: user.email, organizationId: home.id }),
  'make owner': ({ owner, user, home }) =>
    auth(owner, 'organization/update-member-role', {
      ...{ memberId: home.memberIds.get(user), role: 'owner', organizationId: home.id },
    }),
  'delete organization': ({ owner, home }) => auth(owner, 'organization/delete', { organizationId: home.id }),
  accept: ({ user, invitation }) =>
    auth(user, 'organization/accept-invitation', { invitationId: invitation }),
  cancel: ({ owner, invitation }) =>
    auth(owner, 'organization/cancel-invitation', { invitationId: invitation }),
  'delete the other organization': ({ owner, other }) =>
    auth(owner, 'organization/delete', { organizationId: other.id }),
  'owner goes': ({ owner, admin }) => auth(admin, 'admin/remove-user', { userId: owner.id }),
  create: ({ user }) => auth(user, 'organization/create', { name: 'New', slug: `n-${user.id}` }),
}

/** The event of an act has its name. */
const eventOf = (action: string) => `auth_${action.replace('.', '_')}`
/** Acts that are also events. */
const TOLD = Object.keys(ACTIONS).filter((action) => Object.hasOwn(EVENTS, eventOf(action)))

const seen = new Set<string>()

/** The events and the acts since the last call. */
async function toldAndDone() {
  const events = await db.selectFrom('webhookEvent').select('body').execute()
  const acts = await db
    .selectFrom('auditEvent')
    .select(['id', 'action', 'targetId', 'organizationId', 'details'])
    .where('action', 'in', TOLD)
    .execute()
  const told = events.map(({ body }) => {
    const { type, data } = JSON.parse(body)
    const { user_id, session_id = user_id, organization_id } = data
    if (/member/.test(type)) return `${type} ${organization_id}/${user_id}`
    return `${type} ${/organization/.test(type) ? organization_id : session_id}`
  })
  const fresh = acts.filter(({ id }) => !seen.has(id))
  for (const { id } of fresh) seen.add(id)
  const done = fresh.map(({ action, targetId, organizationId, details }) => {
    const { sessionId } = details as { readonly sessionId?: string } // of user.signed_in
    const target = action === 'user.signed_in' ? sessionId : targetId
    return `${eventOf(action)} ${/member/.test(action) ? `${organizationId}/${target}` : target}`
  })
  await db.deleteFrom('webhookEvent').execute()
  return { told: told.toSorted(), done: done.toSorted() }
}

const isThere = async (table: 'user' | 'organization', id: string) =>
  (await db.selectFrom(table).select('id').where('id', '=', id).executeTakeFirst()) !== undefined

test('of two verbs at the same moment each tells its events exactly if it commits', async () => {
  const names = Object.keys(VERBS)
  await toldAndDone()
  let total = 0
  for (const [index, one] of names.entries())
    for (const two of names.slice(index)) {
      const scene = await newScene()
      if (one === 'disable' || two === 'disable') await insertFactor(t, scene.user)
      const answers = await Promise.all([one, two].map((name) => VERBS[name]?.(scene)))
      const pair = `${one} × ${two}: ${answers.map((answer) => `${answer?.status} ${answer?.body?.code ?? ''}`)}`
      for (const answer of answers) assert.ok((answer?.status ?? 500) < 500, pair)
      const { told, done } = await toldAndDone()
      assert.deepEqual(told, done, pair)
      await expectState(scene, told, pair)
      total += told.length
    }
  assert.ok(total > 200, `${total} events were told`)
})

/** Users, organizations, memberships and sessions are as the events say. */
async function expectState(
  { user, home, other }: Scene,
  told: readonly string[],
  pair: string,
): Promise<void> {
  const says = (name: EventName, id: string) => told.includes(`${name} ${id}`)
  assert.equal(await isThere('user', user.id), !says('auth_user_deleted', user.id), pair)
  for (const { id } of [home, other])
    assert.equal(await isThere('organization', id), !says('auth_organization_deleted', id), pair)
  const membership = await db
    .selectFrom('member')
    .select('id')
    .where('userId', '=', user.id)
    .where('organizationId', '=', home.id)
    .execute()
  const hasEnded =
    says('auth_organization_deleted', home.id) || says('auth_member_removed', `${home.id}/${user.id}`)
  assert.equal(membership.length, hasEnded ? 0 : 1, pair)
  const sessions = await db
    .selectFrom('session')
    .select('id')
    .where('userId', '=', user.id)
    .where('impersonatedBy', 'is', null)
    .where('id', '!=', user.sessionId)
    .execute()
  for (const { id } of sessions)
    assert.ok(says('auth_user_signed_in', id), `${pair}: a session without an event`)
}
