import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Answer, testService } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import {
  createInvitation,
  createOrganization,
  createPerson,
  type Organization,
  type Person,
} from '#test/organizations.ts'

const t = await testService({ config: { auth: { organization: { max_members: 5 } } } })
const { kernel } = t.service
const { db } = kernel
const rows = heldRows(t.controlUrl)
after(rows.close)

/** Ada and Bea own the organization, Cem is an admin. Cem has invited Dan, and Bea has invited Eve. One seat is free. */
type Scene = {
  readonly organization: Organization
  readonly ada: Person
  readonly bea: Person
  readonly cem: Person
  readonly dan: Person
  readonly eve: Person
  readonly invited: { readonly dan: string; readonly eve: string }
}

async function newScene(): Promise<Scene> {
  const people = await Promise.all(Array.from({ length: 6 }, () => createPerson(t)))
  const [ada, bea, cem, dan, eve, fay] = people as [Person, Person, Person, Person, Person, Person]
  const organization = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'owner'],
    [cem, 'admin'],
    [fay, 'member'],
  ])
  const invited = {
    dan: await createInvitation(t, organization, { from: cem, to: dan.email }),
    eve: await createInvitation(t, organization, { from: bea, to: eve.email, role: 'owner' }),
  }
  return { organization, ada, bea, cem, dan, eve, invited }
}

type Name = Exclude<keyof Scene, 'organization' | 'invited'>
type Verb = (scene: Scene) => Promise<Answer>

const post =
  (who: Name, path: string, body: (scene: Scene) => object): Verb =>
  (scene) =>
    scene[who].post(`/api/auth${path}`, body(scene))
const ofOrganization = ({ organization }: Scene) => ({ organizationId: organization.id })
const accept = (who: 'dan' | 'eve') =>
  post(who, '/organization/accept-invitation', ({ invited }) => ({ invitationId: invited[who] }))
const leave = (who: Name) => post(who, '/organization/leave', ofOrganization)
const remove = (who: Name, whom: Name) =>
  post(who, '/organization/remove-member', (scene) => ({
    ...ofOrganization(scene),
    memberIdOrEmail: scene[whom].email,
  }))
const give = (who: Name, whom: Name, role: string) =>
  post(who, '/organization/update-member-role', (scene) => ({
    ...ofOrganization(scene),
    ...{ memberId: scene.organization.memberIds.get(scene[whom]), role },
  }))
const deleteUser = (who: Name) => post(who, '/delete-user', () => ({}))
const end = post('ada', '/organization/delete', ofOrganization)
const cancel = post('ada', '/organization/cancel-invitation', ({ invited }) => ({
  invitationId: invited.dan,
}))

const said = ({ status, body }: Answer): unknown => (status === 200 ? 200 : body?.code)

/** Starts the verbs so that they pass their first checks and then act in this order. */
const inOrder = async (scene: Scene, ...verbs: readonly Verb[]): Promise<unknown[]> =>
  (
    await rows.inOrder(
      scene.organization.id,
      verbs.map((verb) => () => verb(scene)),
    )
  ).map(said)

const membersOf = async ({ organization }: Scene) =>
  await db
    .selectFrom('member')
    .select(['userId', 'role'])
    .where('organizationId', '=', organization.id)
    .execute()
const isOwner = ({ role }: { role: string }) => role.split(',').includes('owner')

const GONE = 'INVITATION_NOT_FOUND'
const STRANGER = 'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION'
const ONLY_OWNER = 'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER'

/** Name, the two verbs, and the answers in the given and in the other order. */
type Pair = readonly [
  name: string,
  one: Verb,
  two: Verb,
  given: readonly unknown[],
  reversed: readonly unknown[],
]

const ACCEPTING: readonly Pair[] = [
  ['cancel', accept('dan'), cancel, [200, GONE], [200, GONE]],
  ['removal of the inviter', accept('dan'), remove('ada', 'cem'), [200, 200], [200, GONE]],
  ['demotion of the inviter', accept('dan'), give('ada', 'cem', 'member'), [200, 200], [200, GONE]],
  ['departure of the inviter', accept('dan'), leave('cem'), [200, 200], [200, GONE]],
  ['deletion of the inviter', accept('dan'), deleteUser('cem'), [200, 200], [200, GONE]],
  [
    'an inviter who is no owner any more',
    accept('eve'),
    give('ada', 'bea', 'admin'),
    [200, 200],
    [200, GONE],
  ],
  ['deletion of the organization', accept('dan'), end, [200, 200], [200, GONE]],
  [
    'the last seat',
    accept('dan'),
    accept('eve'),
    [200, 'ORGANIZATION_MEMBERSHIP_LIMIT_REACHED'],
    [200, 'ORGANIZATION_MEMBERSHIP_LIMIT_REACHED'],
  ],
]

test('an invitation is accepted before or after what ends it, never both', async () => {
  for (const [name, one, two, given, reversed] of ACCEPTING) {
    assert.deepEqual(await inOrder(await newScene(), one, two), given, `accept, then ${name}`)
    assert.deepEqual(await inOrder(await newScene(), two, one), reversed, `${name}, then accept`)
  }
})

test('an organization that begins to require a second factor is active in no session without one', async () => {
  const requireFactor = post('ada', '/organization/update', (scene) => ({
    ...ofOrganization(scene),
    data: { requireTwoFactor: true },
  }))
  const activate = post('cem', '/organization/set-active', ofOrganization)
  const active = async ({ organization }: Scene) =>
    (
      await db
        .selectFrom('session')
        .select('id')
        .where('activeOrganizationId', '=', organization.id)
        .execute()
    ).length
  for (const [order, answers] of [
    [
      [requireFactor, activate],
      [200, 'TWO_FACTOR_REQUIRED'],
    ],
    [
      [activate, requireFactor],
      [200, 200],
    ],
  ] as const) {
    const scene = await newScene()
    assert.deepEqual(await inOrder(scene, ...order), answers)
    assert.equal(await active(scene), 0)
  }
})

/** Each takes an owner away. */
const TAKING: Readonly<Record<string, Verb>> = {
  'Ada leaves': leave('ada'),
  'Ada demotes Bea': give('ada', 'bea', 'admin'),
  'Ada removes Bea': remove('ada', 'bea'),
  'Ada deletes the account': deleteUser('ada'),
  'Bea leaves': leave('bea'),
  'Bea demotes Ada': give('bea', 'ada', 'admin'),
  'Bea removes Ada': remove('bea', 'ada'),
  'Bea deletes the account': deleteUser('bea'),
}
const REFUSED: readonly unknown[] = [
  STRANGER,
  ONLY_OWNER,
  'UNAUTHORIZED',
  'MEMBER_NOT_FOUND',
  'SOLE_OWNER_OF_ORGANIZATION',
  'YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER',
  'YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER',
  'YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER',
]

test('of two owners who leave, demote, remove or delete each other or themselves, one stays owner', async () => {
  // The names are interchangeable, so the first verb is always one of Ada.
  for (const [first, one] of Object.entries(TAKING).filter(([name]) => name.startsWith('Ada')))
    for (const [second, two] of Object.entries(TAKING).filter(([name]) => name !== first)) {
      const scene = await newScene()
      const [done, refused] = await inOrder(scene, one, two)
      assert.equal(done, 200, first)
      // A member who loses only the role may still leave, be removed or delete the account.
      const owners = (await membersOf(scene)).filter(isOwner)
      assert.equal(owners.length, 1, `${first}, then ${second}`)
      assert.ok(refused === 200 || REFUSED.includes(refused), `${first}, then ${second}: ${refused}`)
    }
})

test('two owners who leave at once leave one owner', async () => {
  for (let round = 0; round < 5; round++) {
    const scene = await newScene()
    const answers = await Promise.all([leave('ada')(scene), leave('bea')(scene)])
    assert.deepEqual(answers.map(said).toSorted(), [200, ONLY_OWNER])
    assert.equal((await membersOf(scene)).filter(isOwner).length, 1)
  }
})

test('all verbs of an organization at once cause no deadlock, and its members stay counted', async () => {
  const revoke = (who: Name) => post(who, '/revoke-other-sessions', () => ({}))
  const verbs = [
    ...[...Object.values(TAKING), accept('dan'), accept('eve'), cancel, leave('cem'), remove('ada', 'cem')],
    ...[
      give('bea', 'cem', 'member'),
      deleteUser('cem'),
      deleteUser('dan'),
      revoke('ada'),
      revoke('cem'),
      revoke('eve'),
    ],
    post('ada', '/organization/set-active', ofOrganization),
    post('cem', '/organization/set-active', ofOrganization),
    post('cem', '/organization/update', (scene) => ({ ...ofOrganization(scene), data: { name: 'New' } })),
    post('bea', '/organization/invite-member', (scene) => ({
      ...ofOrganization(scene),
      email: 'x@example.com',
      role: 'member',
    })),
  ]
  for (let round = 0; round < 4; round++) {
    const scene = await newScene()
    const order = verbs.map((_, index) => verbs[(index * 5 + round * 7) % verbs.length] ?? end)
    const answers = await Promise.all((round === 3 ? [...order, end] : order).map((verb) => verb(scene)))
    assert.deepEqual(
      answers.filter(({ status }) => status >= 500).map(({ text }) => text),
      [],
    )
    const row = await db
      .selectFrom('organization')
      .select('memberCount')
      .where('id', '=', scene.organization.id)
      .executeTakeFirst()
    const members = await membersOf(scene)
    assert.equal(row?.memberCount ?? 0, members.length)
    assert.ok(row === undefined || members.some(isOwner))
  }
})

/** Every route that changes an organization, called by an owner; `dan` and `eve` are invited. */
const CHANGING: Readonly<Record<string, readonly [Name, Verb]>> = {
  create: ['ada', post('ada', '/organization/create', ({ ada }) => ({ name: 'New', slug: ada.id }))],
  update: [
    'ada',
    post('ada', '/organization/update', (scene) => ({ ...ofOrganization(scene), data: { name: 'New' } })),
  ],
  delete: ['ada', end],
  'set-active': ['ada', post('ada', '/organization/set-active', ofOrganization)],
  'set-active to none': ['ada', post('ada', '/organization/set-active', () => ({ organizationId: null }))],
  'invite-member': [
    'ada',
    post('ada', '/organization/invite-member', (scene) => ({
      ...ofOrganization(scene),
      email: 'y@example.com',
      role: 'member',
    })),
  ],
  'cancel-invitation': ['ada', cancel],
  'accept-invitation': ['dan', accept('dan')],
  'reject-invitation': [
    'dan',
    post('dan', '/organization/reject-invitation', ({ invited }) => ({ invitationId: invited.dan })),
  ],
  'confirm/invitation': ['dan', post('dan', '/confirm/invitation', ({ invited }) => ({ id: invited.dan }))],
  'remove-member': ['ada', remove('ada', 'cem')],
  'update-member-role': ['ada', give('ada', 'cem', 'member')],
  leave: ['ada', leave('ada')],
}

for (const [change, statement] of [
  ['session is revoked', 'delete from service.session where user_id = $1'],
  ['user is banned', 'update service."user" set banned = true where id = $1'],
] as const)
  test(`no verb of an organization has an effect if its ${change} before it acts`, async () => {
    for (const [name, [who, verb]] of Object.entries(CHANGING)) {
      const scene = await newScene()
      const { id } = scene[who]
      const held = await rows.hold('select from service."user" where id = $1 for no key update', [id])
      const answer = verb(scene)
      await held.waiting(1)
      await held.client.query(statement, [id])
      await held.release()
      assert.deepEqual([(await answer).status, said(await answer)], [401, 'UNAUTHORIZED'], name)
    }
  })
