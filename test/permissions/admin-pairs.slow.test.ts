import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, actor, linkIn, testService, type User } from '#test/harness.ts'
import { createOrganization, createPerson, type Organization, type Person } from '#test/organizations.ts'
import { sampled } from '#test/sample.ts'
import { type Effect, PERMISSIONS, ROLES, roleOf, TOGETHER_WITH, withImplied } from './admin-pairs.ts'
import { expectEveryRoute } from './matrix.ts'

const t = await testService({ config: { auth: { admin: { roles: ROLES } } } })
const { db, coherence } = t.service.kernel
const bystander = await createPerson(t)
const THEIRS = 'the password of the holder'
let made = 0

/** The holder of one permission, and the user on whom nothing else may happen. */
type Case = {
  readonly holder: Person
  readonly target: User & { readonly sessionId: string }
  /** Of the bystander, with the target as a member. */
  readonly organization: Organization
  /** An address whose mail the holder reads. */
  readonly mailbox: string
}

/** All that can be asked of an administration, in an order in which a later request may use what an earlier one did. */
const REQUESTS: Readonly<Record<string, (of: Case) => readonly object[]>> = {
  'GET /admin/list-users': () => [{}, { searchValue: bystander.email }],
  'GET /admin/get-user': ({ target }) => [{ id: target.id }],
  'GET /admin/list-user-accounts': userIdOf,
  'GET /admin/list-user-factors': userIdOf,
  'GET /admin/list-organizations': () => [{}],
  'GET /admin/get-organization': organizationOf,
  'GET /admin/list-organization-members': organizationOf,
  'GET /admin/list-organization-invitations': organizationOf,
  'POST /admin/update-organization': (of) =>
    organizationOf(of).map((named) => ({ ...named, data: { name: 'Taken over' } })),
  'POST /admin/update-member-role': (of) => memberOf(of).map((named) => ({ ...named, role: 'admin' })),
  'POST /admin/invite-member': ({ organization: { id: organizationId }, mailbox: email }) => [
    { organizationId, email, role: 'owner' },
  ],
  // With the id of one, after the request before, that of an unknown one would do as little.
  'POST /admin/cancel-invitation': ({ organization }) => [{ invitationId: organization.id }],
  'POST /admin/remove-member': memberOf,
  'POST /admin/delete-organization': organizationOf,
  'GET /admin/list-user-organizations': userIdOf,
  'GET /admin/list-audit-events': () => [{}],
  'GET /admin/list-permissions': () => [{}],
  'POST /admin/has-permission': () => [{ permissions: { user: ['set-email'] } }],
  'POST /admin/create-user': ({ mailbox }) => {
    const user = () => ({ email: `made-${++made}-${mailbox}`, password: THEIRS, name: 'Made' })
    const data = [{}, { emailVerified: true }, { email: mailbox, emailVerified: true }, { role: 'admin' }]
    return [
      ...data.map((data) => ({ ...user(), data })),
      ...['user', 'admin'].map((role) => ({ ...user(), role })),
    ]
  },
  'POST /admin/update-user': ({ holder, target: { id: userId }, mailbox: email }) => [
    ...[{ name: 'Other' }, { image: 'https://example.com/a.png' }, { username: `u${userId.slice(-10)}` }]
      .concat([
        { emailVerified: false },
        { email, emailVerified: true },
        { email },
        { emailVerified: true },
      ] as never[])
      .concat([
        { role: 'admin' },
        { banned: true },
        { twoFactorEnabled: false },
        { password: THEIRS },
      ] as never[])
      .map((data) => ({ userId, data })),
    { userId: holder.id, data: { role: 'admin' } },
  ],
  'POST /admin/set-role': ({ holder, target }) =>
    [target.id, holder.id].flatMap((userId) => ['admin', 'user-set-role'].map((role) => ({ userId, role }))),
  'POST /admin/list-user-sessions': userIdOf,
  'POST /admin/impersonate-user': ({ target: { id: userId } }) => [{ userId }, { userId, handoff: true }],
  // With a right code, after the request before (tokenOf).
  'POST /admin/exchange-handoff': () => [{ code: 'A'.repeat(43) }],
  // No holder of a permission has the link.
  'POST /admin/create-first-admin': ({ mailbox }) => [
    { token: 'A'.repeat(43), name: 'Root', email: mailbox, password: THEIRS },
  ],
  'POST /admin/stop-impersonating': () => [{}],
  'POST /admin/revoke-user-session': ({ target: { sessionId } }) => [{ sessionToken: `sh_${sessionId}` }],
  'POST /admin/revoke-user-sessions': userIdOf,
  'POST /admin/set-user-password': ({ target }) => [{ userId: target.id, newPassword: THEIRS }],
  'POST /admin/ban-user': userIdOf,
  'POST /admin/unban-user': userIdOf,
  'POST /admin/remove-user': userIdOf,
}

function userIdOf({ target }: Case): readonly object[] {
  return [{ userId: target.id }]
}

function organizationOf({ organization: { id: organizationId } }: Case): readonly object[] {
  return [{ organizationId }]
}
function memberOf({ organization: { id: organizationId, memberIds }, target }: Case): readonly object[] {
  return [{ organizationId, memberId: memberIds.get(target) }]
}

type Before = Awaited<ReturnType<typeof rowsOf>>
type Seen = { readonly of: Case; readonly before: Before; readonly now: Before; readonly told: string }

/** Whether what a permission is for has happened. A new action without an entry does not compile. */
const EFFECTS: Readonly<Record<Effect, (seen: Seen) => boolean>> = {
  'user:create': ({ of, now }) => now.made.some(({ email }) => email.endsWith(of.mailbox)),
  'user:list': ({ told }) => told.includes(bystander.email),
  'user:get': ({ of, told }) => told.includes(of.target.email),
  'user:set-role': ({ now, before }) =>
    isChanged(before, now, 'role') || now.holder?.role !== before.holder?.role,
  'user:ban': ({ now }) => now.user?.banned === true,
  'user:impersonate': ({ of, told }) => told.includes(`"impersonatedBy":"${of.holder.id}"`),
  'user:delete': ({ now }) => now.user === undefined,
  'user:set-password': ({ before, now }) => now.user !== undefined && now.password !== before.password,
  'user:set-email': ({ before, now }) =>
    isChanged(before, now, 'email') || isChanged(before, now, 'emailVerified'),
  'user:update': ({ before, now }) => isChanged(before, now, 'username'),
  'session:list': ({ of, told }) => told.includes(`sh_${of.target.sessionId}`),
  'session:revoke': ({ now }) => now.session === undefined,
  'session:delete': ({ now }) => now.session === undefined,
  'organization:list': ({ told }) => told.includes('"organizations"'),
  'organization:update': ({ before, now }) =>
    now.organization !== undefined && now.organization.name !== before.organization?.name,
  'organization:delete': ({ now }) => now.organization === undefined,
  'organization:manage-members': ({ before, now }) =>
    now.invitations.length > 0 ||
    (now.user !== undefined && now.organization !== undefined && now.member?.role !== before.member?.role),
  'audit:list': ({ told }) => told.includes('"nextCursor"'),
  'name and image': ({ before, now }) => isChanged(before, now, 'name'),
}

const EFFECT_LIST = Object.entries(EFFECTS) as [Effect, (seen: Seen) => boolean][] // the keys of a record of effects

const isChanged = (
  before: Before,
  now: Before,
  field: 'name' | 'role' | 'email' | 'emailVerified' | 'username',
): boolean => now.user !== undefined && now.user[field] !== before.user?.[field]

async function rowsOf({ holder, target, organization }: Case) {
  const user = (id: string) => db.selectFrom('user').selectAll().where('id', '=', id).executeTakeFirst()
  return {
    user: await user(target.id),
    holder: await user(holder.id),
    made: await db.selectFrom('user').select('email').where('email', 'like', 'made-%').execute(),
    password: (
      await db.selectFrom('account').select('password').where('userId', '=', target.id).executeTakeFirst()
    )?.password,
    ...(await organizationRows(organization.id, target.id)),
    session: await db
      .selectFrom('session')
      .select('id')
      .where('id', '=', target.sessionId)
      .executeTakeFirst(),
  }
}

async function organizationRows(id: string, userId: string) {
  const members = db.selectFrom('member').select('role').where('organizationId', '=', id)
  return {
    organization: await db.selectFrom('organization').select('name').where('id', '=', id).executeTakeFirst(),
    member: await members.where('userId', '=', userId).executeTakeFirst(),
    invitations: await db.selectFrom('invitation').select('id').where('organizationId', '=', id).execute(),
  }
}

async function newCase(role: string, { targetRole = 'user' } = {}): Promise<Case> {
  const [holder, target] = [await createPerson(t, { role }), await t.signUp('Target')]
  await db
    .updateTable('user')
    .set({ emailVerified: true, emailProvenAt: new Date(), role: targetRole })
    .where('id', '=', target.id)
    .execute()
  await coherence.settle()
  const { id: sessionId } = (await target.get('/api/auth/get-session')).body.session
  const member = { ...target, sessionId }
  const organization = await createOrganization(t, [
    [bystander, 'owner'],
    [member, 'member'],
  ])
  return { holder, target: member, organization, mailbox: `mailbox-${holder.id.slice(-12)}@example.com` }
}

const ask = (who: Actor, route: string, request: object): Promise<Answer> => {
  const [method, path] = route.split(' ')
  if (method === 'GET') return who.get(`/api/auth${path}?${new URLSearchParams(Object.entries(request))}`)
  return who.post(`/api/auth${path}`, request)
}

/** What the holder does with a mailbox, and with a password that the account may have. */
async function enter({ target, mailbox }: Case): Promise<readonly Answer[]> {
  await t.anon.post('/api/auth/forget-password', { email: mailbox })
  const mails = (await t.mails()).filter((mail) => mail.includes(`To: ${mailbox}`))
  for (const mail of mails) {
    const [, token] = /reset-password\/([\w-]+)/.exec(mail.includes('http') ? linkIn(mail) : '') ?? []
    if (token !== undefined) await t.anon.post('/api/auth/reset-password', { token, newPassword: THEIRS })
  }
  const answers: Answer[] = []
  for (const email of [mailbox, target.email]) {
    const { body } = await t.anon.post('/api/auth/sign-in/email', { email, password: THEIRS })
    if (body?.user?.id === target.id) answers.push(...(await use(body.token)))
  }
  return answers
}

/** Of an impersonation, which may be handed off. */
const tokenOf = async ({ session, code }: Answer['body']): Promise<string> =>
  session?.token ?? (await t.anon.post('/api/auth/admin/exchange-handoff', { code })).body.session.token

/** With a session of the target: its own, or an impersonated one. */
async function use(token: string): Promise<readonly Answer[]> {
  const session = actor(t.url, { authorization: `Bearer ${token}` })
  return [
    await session.get('/api/auth/list-sessions'),
    await session.post('/api/auth/update-user', { name: 'Another' }),
    await session.post('/api/auth/update-user', { username: `v${token.slice(0, 8).replaceAll('-', '_')}` }),
    await session.post('/api/auth/change-email', {
      newEmail: `x-${token.slice(0, 8)}@example.com`.toLowerCase(),
    }),
    await session.post('/api/auth/revoke-sessions'),
  ]
}

/** Every request twice, so that each can use what any other has done; the removal last. */
const ROUTES = Object.keys(REQUESTS)
const REMOVAL = 'POST /admin/remove-user'
const LASTING = ROUTES.filter((route) => route !== REMOVAL)

async function reachedBy(of: Case): Promise<ReadonlySet<Effect>> {
  const before = await rowsOf(of)
  const reached = new Set<Effect>()
  const texts: string[] = []
  const look = async () => {
    const seen = { of, before, now: await rowsOf(of), told: texts.join('\n') }
    for (const [effect, hasHappened] of EFFECT_LIST) if (hasHappened(seen)) reached.add(effect)
  }
  for (const route of [...LASTING, ...LASTING, REMOVAL]) {
    for (const request of REQUESTS[route]?.(of) ?? []) {
      const { status, body, text } = await ask(of.holder, route, request)
      assert.ok(status < 500, text)
      if (status === 200) texts.push(text)
      if (route === 'POST /admin/impersonate-user' && status === 200)
        texts.push(...(await use(await tokenOf(body))).map(({ text }) => text))
    }
    texts.push(...(await enter(of)).map(({ text }) => text))
    await look()
  }
  return reached
}

test('every admin endpoint is among the requests', () =>
  expectEveryRoute(
    t,
    '/admin/',
    Object.fromEntries(ROUTES.map((route) => [route, { request: {}, expected: {} }])),
  ))

for (const held of sampled(PERMISSIONS, 3)) {
  test(`who holds ${held} alone reaches nothing but what it contains, by no path`, async () => {
    const together = TOGETHER_WITH[held]
    const reached = await reachedBy(await newCase(roleOf(held)))
    const contained = withImplied(together === undefined ? [held] : [held, together])
    assert.deepEqual(
      [...reached].filter((one) => !contained.has(one)),
      [],
    )
    // No route asks for it.
    if (held !== 'session:delete') assert.ok(reached.has(held), `${held} does not open what it is for`)
  })
}

const HANDED_OVER = ['user:set-password', 'user:set-email', 'user:impersonate'] as const
for (const held of HANDED_OVER) {
  test(`who holds ${held} hands over no one who holds it too`, async () => {
    const reached = await reachedBy(await newCase(roleOf(held), { targetRole: roleOf(held) }))
    assert.deepEqual(
      HANDED_OVER.filter((one) => reached.has(one)),
      [],
    )
  })
}
