import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, linkIn, testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson, type Person } from '#test/organizations.ts'

const t = await testService({
  config: {
    auth: {
      admin: {
        roles: { keeper: { organization: ['list', 'update', 'manage-members'], user: ['list'] } },
      },
    },
  },
})
const { db, coherence } = t.service.kernel
const ADMIN = '/api/auth/admin'
const root = await createPerson(t, { role: 'admin' })
const keeper = await createPerson(t, { role: 'keeper' })

const refused = ({ status, body }: Answer) => [status, body?.code]
const done = ({ status, body, text }: Answer) => {
  assert.equal(status, 200, text)
  return body
}
async function scene() {
  const [ada, bea] = [await createPerson(t), await createPerson(t)]
  const organization = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
  ])
  const memberId = (person: Person) => organization.memberIds.get(person)
  return { ada, bea, organizationId: organization.id, organization, memberId }
}
const trailOf = (organizationId: string) =>
  db
    .selectFrom('auditEvent')
    .select(['action', 'actorId', 'targetId'])
    .where('organizationId', '=', organizationId)
    .orderBy('id')
    .execute()
const roleOf = ({ id: userId }: Person) =>
  db.selectFrom('member').select('role').where('userId', '=', userId).executeTakeFirst()

test('an administrator who is no member reads an organization, its members and its invitations, a page at a time', async () => {
  const { ada, bea, organization, organizationId } = await scene()
  await createInvitation(t, organization, { from: ada, to: 'guest@example.com' })
  const read = (path: string, more = '') =>
    root.get(`${ADMIN}/${path}?organizationId=${organizationId}${more}`)
  assert.deepEqual(
    [done(await read('get-organization')).slug, done(await read('get-organization')).metadata],
    [organization.slug, '{}'],
  )
  const emails = ({ members }: { members: { user: { email: string } }[] }) =>
    members.map(({ user }) => user.email)
  const all = done(await read('list-organization-members'))
  assert.deepEqual([emails(all), all.total], [[ada.email, bea.email], 2])
  const second = done(await read('list-organization-members', '&limit=1&offset=1'))
  assert.deepEqual([emails(second), second.total], [[bea.email], 2])
  const { invitations } = done(await read('list-organization-invitations'))
  assert.deepEqual(
    invitations.map(({ email, status }: { email: string; status: string }) => [email, status]),
    [['guest@example.com', 'pending']],
  )
  for (const path of ['get-organization', 'list-organization-members', 'list-organization-invitations'])
    for (const id of [root.id, 'nothing'])
      assert.deepEqual(refused(await root.get(`${ADMIN}/${path}?organizationId=${id}`)), [
        404,
        'ORGANIZATION_NOT_FOUND',
      ])
})

test('an administrator changes an organization, and the trail names the person', async () => {
  const { organizationId } = await scene()
  const update = (data: object) => root.post(`${ADMIN}/update-organization`, { organizationId, data })
  const changed = done(await update({ name: 'Acme Two', metadata: { plan: 'pro' } }))
  assert.deepEqual([changed.name, JSON.parse(changed.metadata)], ['Acme Two', { plan: 'pro' }])
  const digits = '{"e": null, "n": 12345678901234567890.10}'
  assert.equal(done(await update({ metadata: digits.replace('null', '1e999') })).metadata, digits)
  const { organization: other } = await scene()
  assert.deepEqual(refused(await update({ slug: other.slug })), [400, 'ORGANIZATION_SLUG_ALREADY_TAKEN'])
  assert.deepEqual(refused(await update({})), [400, 'NO_FIELDS_TO_UPDATE'])
  const told = { action: 'organization.updated', actorId: root.id, targetId: organizationId }
  assert.deepEqual(await trailOf(organizationId), [told, told])
})

test('a second factor that is required from now on is required of the sessions there are', async () => {
  const { ada, organizationId } = await scene()
  done(await root.post(`${ADMIN}/update-organization`, { organizationId, data: { requireTwoFactor: true } }))
  const { session } = done(await ada.get('/api/auth/get-session'))
  assert.equal(session.activeOrganizationId, null)
})

test('roles of members are changed, and one owner stays', async () => {
  const { ada, bea, organizationId, memberId } = await scene()
  const give = (person: Person, role: string) =>
    root.post(`${ADMIN}/update-member-role`, { organizationId, memberId: memberId(person), role })
  assert.deepEqual(refused(await give(ada, 'member')), [
    400,
    'YOU_CANNOT_LEAVE_THE_ORGANIZATION_WITHOUT_AN_OWNER',
  ])
  assert.equal(done(await give(bea, 'owner')).role, 'owner')
  assert.equal(done(await give(ada, 'member')).role, 'member')
  assert.deepEqual(refused(await give(ada, 'nothing')), [400, 'ROLE_NOT_FOUND'])
  assert.deepEqual(await trailOf(organizationId), [
    { action: 'member.role_changed', actorId: root.id, targetId: bea.id },
    { action: 'member.role_changed', actorId: root.id, targetId: ada.id },
  ])
})

test('members are removed, but for the only owner, and at once', async () => {
  const { ada, bea, organizationId, memberId } = await scene()
  const remove = (person: Person) =>
    root.post(`${ADMIN}/remove-member`, { organizationId, memberId: memberId(person) })
  assert.deepEqual(refused(await remove(ada)), [400, 'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER'])
  assert.deepEqual(done(await remove(bea)), { success: true })
  assert.equal(done(await bea.get('/api/auth/get-session')).session.activeOrganizationId, null)
  assert.deepEqual(refused(await remove(bea)), [400, 'MEMBER_NOT_FOUND'])
  assert.deepEqual(await trailOf(organizationId), [
    { action: 'member.removed', actorId: root.id, targetId: bea.id },
  ])
  const { ada: stranger, memberId: elsewhere } = await scene()
  const foreign = { organizationId, memberId: elsewhere(stranger) }
  assert.deepEqual(refused(await root.post(`${ADMIN}/remove-member`, foreign)), [400, 'MEMBER_NOT_FOUND'])
})

test('nobody changes or removes a member who may do more in the service', async () => {
  const powerful = await createPerson(t, { role: 'admin' })
  const owner = await createPerson(t)
  const { id: organizationId, memberIds } = await createOrganization(t, [
    [owner, 'owner'],
    [powerful, 'member'],
  ])
  const memberId = memberIds.get(powerful)
  for (const [path, more] of [
    ['update-member-role', { role: 'admin' }],
    ['remove-member', {}],
  ] as const)
    assert.deepEqual(refused(await keeper.post(`${ADMIN}/${path}`, { organizationId, memberId, ...more })), [
      403,
      'YOU_ARE_NOT_ALLOWED_TO_MANAGE_ORGANIZATIONS',
    ])
  assert.equal((await roleOf(powerful))?.role, 'member')
  assert.deepEqual(await trailOf(organizationId), [])
})

test('an invitation of an administrator is mailed, accepted, and void when the administrator may not invite any more', async () => {
  const { organizationId } = await scene()
  const [cem, dora] = [await createPerson(t), await createPerson(t)]
  const inviter = await createPerson(t, { role: 'keeper' })
  await t.mails()
  const invite = (email: string, more = {}) =>
    inviter.post(`${ADMIN}/invite-member`, { organizationId, email, role: 'admin', ...more })
  const first = done(await invite(cem.email))
  assert.deepEqual(refused(await invite(cem.email)), [400, 'USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION'])
  assert.equal(done(await invite(cem.email, { resend: true })).id, first.id)
  const mails = await t.mails()
  assert.deepEqual([mails.length, mails.every((mail) => linkIn(mail).includes(first.id))], [2, true])
  done(await cem.post('/api/auth/organization/accept-invitation', { invitationId: first.id }))
  assert.equal((await roleOf(cem))?.role, 'admin')
  assert.deepEqual(refused(await invite(cem.email)), [400, 'USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION'])

  const second = done(await invite(dora.email))
  await db.updateTable('user').set({ role: 'user' }).where('id', '=', inviter.id).execute()
  await coherence.settle()
  const late = await dora.post('/api/auth/organization/accept-invitation', { invitationId: second.id })
  assert.deepEqual(refused(late), [400, 'INVITATION_NOT_FOUND'])
  assert.equal(await roleOf(dora), undefined)
})

test('an invitation is canceled once', async () => {
  const { ada, organization, organizationId } = await scene()
  const invitationId = await createInvitation(t, organization, { from: ada, to: 'guest@example.com' })
  const cancel = () => root.post(`${ADMIN}/cancel-invitation`, { invitationId })
  const answers = await Promise.all(Array.from({ length: 10 }, cancel))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 200))
    assert.deepEqual(refused(answer), [400, 'INVITATION_NOT_FOUND'])
  assert.deepEqual(await trailOf(organizationId), [
    { action: 'invitation.canceled', actorId: root.id, targetId: organizationId },
  ])
})

test('an organization is deleted with members and invitations, by one of any number of requests', async () => {
  const { ada, organization, organizationId } = await scene()
  await createInvitation(t, organization, { from: ada, to: 'guest@example.com' })
  const remove = () => root.post(`${ADMIN}/delete-organization`, { organizationId })
  assert.equal((await keeper.post(`${ADMIN}/delete-organization`, { organizationId })).status, 403)
  const answers = await Promise.all(Array.from({ length: 10 }, remove))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  for (const answer of answers.filter(({ status }) => status !== 200))
    assert.deepEqual(refused(answer), [404, 'ORGANIZATION_NOT_FOUND'])
  assert.equal(done(await ada.get('/api/auth/get-session')).session.activeOrganizationId, null)
  const rows = await db
    .selectFrom('member')
    .select('id')
    .where('organizationId', '=', organizationId)
    .execute()
  assert.deepEqual(rows, [])
  assert.deepEqual(await trailOf(organizationId), [
    { action: 'organization.deleted', actorId: root.id, targetId: organizationId },
  ])
})

test('an administrator who loses the role during a request changes nothing', async () => {
  const { bea, organizationId, memberId } = await scene()
  const acting = await createPerson(t, { role: 'keeper' })
  const demote = () => db.updateTable('user').set({ role: 'user' }).where('id', '=', acting.id).execute()
  const [answer] = await Promise.all([
    acting.post(`${ADMIN}/update-member-role`, { organizationId, memberId: memberId(bea), role: 'admin' }),
    demote(),
  ])
  // Before or after: never half.
  assert.equal(answer.status === 200, (await roleOf(bea))?.role === 'admin')
})
