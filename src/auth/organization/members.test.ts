import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, actor, testService } from '#test/harness.ts'
import { createOrganization, createPerson, type Organization, type Person } from '#test/organizations.ts'

const t = await testService({
  config: {
    auth: { organization: { roles: { closer: { organization: ['delete'], member: ['update', 'delete'] } } } },
  },
})
const { db } = t.service.kernel
const ORG = '/api/auth/organization'
const said = ({ status, body }: Answer) => (status === 200 ? 200 : body?.code)
const activeOf = async (who: Person) =>
  (await who.get('/api/auth/get-session')).body.session?.activeOrganizationId
const rolesIn = async ({ id }: Organization) =>
  (await db.selectFrom('member').select('role').where('organizationId', '=', id).execute())
    .map(({ role }) => role)
    .toSorted()

const people = (count: number) => Promise.all(Array.from({ length: count }, () => createPerson(t)))

test('only owners give the role owner, change owners and remove owners', async () => {
  const [ada, bea, cem] = (await people(3)) as [Person, Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
    [cem, 'member'],
  ])
  const idOf = (who: Person) => acme.memberIds.get(who)
  const give = async (by: Person, whom: Person, role: unknown) =>
    said(await by.post(`${ORG}/update-member-role`, { memberId: idOf(whom), role }))
  const refused = 'YOU_ARE_NOT_ALLOWED_TO_UPDATE_THIS_MEMBER'
  assert.equal(await give(bea, cem, 'owner'), refused)
  assert.equal(await give(bea, cem, ['member', 'owner']), refused)
  assert.equal(await give(bea, bea, 'owner'), refused)
  assert.equal(await give(bea, ada, 'member'), refused)
  assert.equal(await give(bea, cem, 'closer'), refused, 'it allows more than the role admin')
  assert.equal(await give(bea, cem, 'king'), 'ROLE_NOT_FOUND')
  assert.equal(await give(bea, cem, ''), 'ROLE_NOT_FOUND')
  const remove = await bea.post(`${ORG}/remove-member`, { memberIdOrEmail: ada.email })
  assert.equal(said(remove), 'YOU_ARE_NOT_ALLOWED_TO_DELETE_THIS_MEMBER')
  assert.deepEqual(await rolesIn(acme), ['admin', 'member', 'owner'])

  const { body } = await bea.post(`${ORG}/update-member-role`, {
    memberId: idOf(cem),
    role: ['admin', 'member', 'admin'],
  })
  assert.deepEqual([body.role, body.member.role, body.id], ['admin,member', 'admin,member', idOf(cem)])
  assert.equal(await give(ada, cem, 'owner'), 200)
  assert.equal(await give(cem, ada, 'member'), 200)
  assert.deepEqual(await rolesIn(acme), ['admin', 'member', 'owner'])
})

test('the last owner cannot leave, be removed or lose the role', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
  ])
  const memberId = acme.memberIds.get(ada)
  assert.equal(
    said(await ada.post(`${ORG}/leave`, { organizationId: acme.id })),
    'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER',
  )
  assert.equal(
    said(await ada.post(`${ORG}/remove-member`, { memberIdOrEmail: memberId })),
    'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER',
  )
  assert.equal(
    said(await ada.post(`${ORG}/update-member-role`, { memberId, role: 'admin' })),
    'YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER',
  )
  assert.equal(said(await ada.post(`${ORG}/update-member-role`, { memberId, role: 'owner,admin' })), 200)
  assert.deepEqual(await rolesIn(acme), ['admin', 'owner,admin'])
})

test('a member who leaves or is removed is out at once, in every session', async () => {
  const [ada, bea, cem] = (await people(3)) as [Person, Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
    [cem, 'member'],
  ])
  assert.deepEqual([await activeOf(bea), await activeOf(cem)], [acme.id, acme.id])
  const left = await bea.post(`${ORG}/leave`, { organizationId: acme.id })
  assert.deepEqual([left.status, left.body.userId, typeof left.body.message], [200, bea.id, 'string'])
  const removed = await ada.post(`${ORG}/remove-member`, { memberIdOrEmail: cem.email.toUpperCase() })
  assert.deepEqual([removed.status, removed.body.member.id], [200, acme.memberIds.get(cem)])
  for (const who of [bea, cem]) {
    assert.equal(await activeOf(who), null)
    assert.equal(
      said(await who.get(`${ORG}/list-members?organizationId=${acme.id}`)),
      'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION',
    )
  }
  assert.equal(
    said(await ada.post(`${ORG}/remove-member`, { memberIdOrEmail: cem.email })),
    'MEMBER_NOT_FOUND',
  )
  const acts = await db
    .selectFrom('auditEvent')
    .select(['action', 'actorId', 'targetId'])
    .where('organizationId', '=', acme.id)
    .orderBy('id')
    .execute()
  assert.deepEqual(
    acts.map((act) => Object.values(act)),
    [
      ['member.removed', bea.id, bea.id],
      ['member.removed', ada.id, cem.id],
    ],
  )
})

test('a member of another organization is not found', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  const beta = await createOrganization(t, [[bea, 'owner']])
  await createOrganization(t, [[ada, 'owner']])
  const memberId = beta.memberIds.get(bea)
  assert.equal(
    said(await ada.post(`${ORG}/remove-member`, { memberIdOrEmail: memberId })),
    'MEMBER_NOT_FOUND',
  )
  assert.equal(
    said(await ada.post(`${ORG}/update-member-role`, { memberId, role: 'member' })),
    'MEMBER_NOT_FOUND',
  )
  assert.equal(said(await ada.get(`${ORG}/get-active-member-role?userId=${bea.id}`)), 'MEMBER_NOT_FOUND')
})

test('members are listed in pages, by cursor or offset, with the number of all', async () => {
  const all = await people(5)
  const acme = await createOrganization(
    t,
    all.map((person, index) => [person, index === 0 ? 'owner' : 'member'] as const),
  )
  const [ada] = all as [Person]
  const list = async (query: string) => (await ada.get(`${ORG}/list-members?${query}`)).body
  const ids = ({ members }: { members: { id: string }[] }) => members.map(({ id }) => id)
  const expected = [...acme.memberIds.values()]
  const first = await list('limit=2')
  const second = await list(`limit=2&cursor=${first.nextCursor}`)
  const third = await list(`limit=2&cursor=${second.nextCursor}`)
  assert.deepEqual([...ids(first), ...ids(second), ...ids(third)], expected)
  assert.deepEqual([first.total, third.nextCursor], [5, null])
  assert.deepEqual(ids(await list('sortDirection=desc&limit=2&offset=1')), expected.toReversed().slice(1, 3))
  assert.deepEqual(ids(await list(`filterField=userId&filterValue=${ada.id}`)), [acme.memberIds.get(ada)])
  assert.deepEqual(ids(await list(`cursor=${ada.id}`)), [], 'the id of no member')
  for (const query of [
    'limit=501',
    'limit=0',
    'offset=10001',
    'sortBy=role',
    'filterField=role&filterValue=owner',
  ])
    assert.equal(said(await ada.get(`${ORG}/list-members?${query}`)), 'VALIDATION_ERROR', query)
})

test('a changed role holds at once', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
  ])
  const may = async () =>
    (await bea.post(`${ORG}/has-permission`, { permissions: { member: ['delete'] } })).body.success
  assert.equal(await may(), true)
  await ada.post(`${ORG}/update-member-role`, { memberId: acme.memberIds.get(bea), role: 'member' })
  assert.equal(await may(), false)
  assert.equal((await bea.get(`${ORG}/get-active-member-role`)).body.role, 'member')
  assert.equal((await bea.get(`${ORG}/get-active-member`)).body.role, 'member')
})

test('another process answers by the new role, and by the end of a membership, at once', async () => {
  const otherProcess = await testService({ controlUrl: t.controlUrl })
  const [ada, bea, cem] = (await people(3)) as [Person, Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
    [cem, 'member'],
  ])
  const there = (who: Person) => actor(otherProcess.url, who.headers)
  const may = async () => {
    const answer = await there(bea).post(`${ORG}/has-permission`, { permissions: { member: ['delete'] } })
    return answer.body.success ?? answer.body.code
  }
  const active = async () => (await there(cem).get('/api/auth/get-session')).body.session.activeOrganizationId
  assert.deepEqual([await may(), await active()], [true, acme.id])
  await ada.post(`${ORG}/update-member-role`, { memberId: acme.memberIds.get(bea), role: 'member' })
  assert.equal(await may(), false)
  await ada.post(`${ORG}/remove-member`, { memberIdOrEmail: cem.email })
  assert.equal(await active(), null)
  await ada.post(`${ORG}/delete`, { organizationId: acme.id })
  assert.equal(await may(), 'NO_ACTIVE_ORGANIZATION')
})

test('an only owner with other members cannot delete the account; an organization without others goes with it', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  const alone = await createOrganization(t, [[ada, 'owner']])
  assert.equal(said(await ada.post('/api/auth/delete-user')), 'SOLE_OWNER_OF_ORGANIZATION')
  assert.equal(await activeOf(ada), alone.id)
  await ada.post(`${ORG}/update-member-role`, {
    organizationId: acme.id,
    memberId: acme.memberIds.get(bea),
    role: 'owner',
  })
  assert.equal((await ada.post('/api/auth/delete-user')).status, 200)
  const left = await db
    .selectFrom('organization')
    .select(['id', 'memberCount'])
    .where('id', 'in', [acme.id, alone.id])
    .execute()
  assert.deepEqual(left, [{ id: acme.id, memberCount: 1 }])
  const acts = await db
    .selectFrom('auditEvent')
    .select(['actorId', 'organizationId'])
    .where('action', '=', 'member.removed')
    .where('targetId', '=', ada.id)
    .execute()
  assert.deepEqual(acts, [{ actorId: ada.id, organizationId: acme.id }])
})
