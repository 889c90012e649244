import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, BROWSER, confirm, linkIn, testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson, type Person } from '#test/organizations.ts'
import { deleteOldInvitations, renewInvitation } from './invitation-store.ts'

const t = await testService({
  config: { auth: { organization: { max_members: 4, max_invitations: 3 } } },
})
const { db } = t.service.kernel
const ORG = '/api/auth/organization'
const DAY = 86_400_000
const said = ({ status, body }: Answer) => (status === 200 ? 200 : body?.code)
const activeOf = async (who: Person) =>
  (await who.get('/api/auth/get-session')).body.session.activeOrganizationId
const people = (count: number) => Promise.all(Array.from({ length: count }, () => createPerson(t)))
const invite = (by: Person, email: string, more: object = {}) =>
  by.post(`${ORG}/invite-member`, { email, role: 'member', ...more })
const answer = (who: Person, verb: 'accept' | 'reject' | 'cancel', invitationId: string) =>
  who.post(`${ORG}/${verb}-invitation`, { invitationId })
const statusOf = async (id: string) =>
  (await db.selectFrom('invitation').select('status').where('id', '=', id).executeTakeFirst())?.status

test('an invitation is mailed, accepted on the page of its link, and its organization becomes active', async () => {
  const [ada, bea, eve] = (await people(3)) as [Person, Person, Person]
  const acme = await createOrganization(t, [[ada, 'owner']])
  const { body: invitation } = await invite(ada, bea.email.toUpperCase(), { role: ['admin', 'member'] })
  assert.deepEqual(
    [invitation.email, invitation.role, invitation.status, invitation.inviterId],
    [bea.email, 'admin,member', 'pending', ada.id],
  )
  const [mail = '', ...more] = await t.mails()
  assert.deepEqual(more, [])
  assert.match(mail.replace(/=\r?\n/g, ''), new RegExp(`${ada.email} invites you to Acme`))
  const link = linkIn(mail)
  assert.match(link, new RegExp(`^/api/auth/confirm/invitation\\?id=${invitation.id}\\.[\\w-]{43}$`))

  // The link alone opens nothing.
  for (const stranger of [t.anon, eve]) {
    const page = await stranger.get(link, { headers: BROWSER })
    assert.equal(page.status, stranger === t.anon ? 401 : 400)
    assert.doesNotMatch(page.text, /Acme|example\.com|<form/)
    assert.match(page.text, /Sign in to the application in this browser, or sign up, with the address/)
  }
  assert.equal(await statusOf(invitation.id), 'pending')
  const done = await confirm(bea, link)
  assert.deepEqual([done.status, /Acme/.test(done.text)], [200, true])
  assert.deepEqual([await statusOf(invitation.id), await activeOf(bea)], ['accepted', acme.id])
  assert.equal((await bea.get(`${ORG}/get-active-member`)).body.role, 'admin,member')
  assert.equal((await bea.get(link, { headers: BROWSER })).status, 400)
})

test('mail to an address that is not proven names neither the organization nor an unproven inviter', async () => {
  const ada = await createPerson(t, { verified: false })
  await createOrganization(t, [[ada, 'owner']])
  await invite(ada, 'stranger@example.com')
  const [mail = ''] = await t.mails()
  assert.match(mail, /invites you to an organization/)
  assert.ok(!mail.includes('Acme') && !mail.includes(ada.email), mail)
})

test('an address is invited once; resend extends the invitation and mails again', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
  ])
  const { body: first } = await invite(ada, 'twice@example.com')
  assert.equal(said(await invite(bea, 'twice@example.com')), 'USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION')
  t.advance(60_000)
  const { body: again } = await invite(bea, 'twice@example.com', { resend: 'true' })
  assert.deepEqual([again.id, again.inviterId], [first.id, bea.id])
  assert.ok(again.expiresAt > first.expiresAt)
  assert.equal((await t.mails()).length, 2)
  assert.equal(said(await invite(ada, bea.email)), 'USER_IS_ALREADY_A_MEMBER_OF_THIS_ORGANIZATION')
  assert.equal(said(await invite(ada, 'no address')), 'INVALID_EMAIL')
  assert.equal(said(await invite(ada, 'x@example.com', { teamId: 'team' })), 'TEAMS_NOT_ENABLED')
  assert.equal(
    said(await invite(bea, 'x@example.com', { role: 'owner' })),
    'YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE',
  )
  await invite(ada, 'heir@example.com', { role: 'owner' })
  assert.equal(
    said(await invite(bea, 'heir@example.com', { resend: true })),
    'YOU_ARE_NOT_ALLOWED_TO_INVITE_USER_WITH_THIS_ROLE',
    'only an owner changes an invitation of an owner',
  )
})

test('an invitation is answered by its recipient only, with a proven address, once', async () => {
  const [ada, bea, eve] = (await people(3)) as [Person, Person, Person]
  const unproven = await createPerson(t, { verified: false })
  const acme = await createOrganization(t, [[ada, 'owner']])
  const id = await createInvitation(t, acme, { from: ada, to: bea.email })
  const other = await createInvitation(t, acme, { from: ada, to: unproven.email })
  for (const verb of ['accept', 'reject'] as const) {
    assert.equal(said(await answer(eve, verb, id)), 'INVITATION_NOT_FOUND')
    assert.equal(said(await answer(unproven, verb, id)), 'INVITATION_NOT_FOUND')
    assert.equal(said(await answer(bea, verb, 'no id')), 'INVITATION_NOT_FOUND')
    assert.equal(
      said(await answer(unproven, verb, other)),
      'EMAIL_VERIFICATION_REQUIRED_BEFORE_ACCEPTING_OR_REJECTING_INVITATION',
    )
  }
  const get = async (who: Person, invitationId: string) =>
    said(await who.get(`${ORG}/get-invitation?id=${invitationId}`))
  assert.deepEqual(
    [await get(bea, id), await get(ada, id), await get(eve, id), await get(unproven, other)],
    [200, 200, 'INVITATION_NOT_FOUND', 'EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION'],
  )
  const mine = await bea.get(`${ORG}/list-user-invitations`)
  assert.deepEqual(
    mine.body.map((each: Record<string, unknown>) => [each.id, each.organizationName, each.inviterEmail]),
    [[id, 'Acme', ada.email]],
  )
  assert.equal(
    said(await unproven.get(`${ORG}/list-user-invitations`)),
    'EMAIL_VERIFICATION_REQUIRED_FOR_INVITATION',
  )

  const rejected = await answer(bea, 'reject', id)
  assert.deepEqual([rejected.body.invitation.status, rejected.body.member], ['rejected', null])
  for (const verb of ['accept', 'reject', 'cancel'] as const)
    assert.equal(said(await answer(verb === 'cancel' ? ada : bea, verb, id)), 'INVITATION_NOT_FOUND')
  assert.equal(await get(bea, id), 'INVITATION_NOT_FOUND')
})

test('a canceled and an expired invitation open nothing', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  const acme = await createOrganization(t, [[ada, 'owner']])
  const canceled = await createInvitation(t, acme, { from: ada, to: bea.email })
  const answered = await answer(ada, 'cancel', canceled)
  assert.deepEqual([answered.body.status, typeof answered.body.message], ['canceled', 'string'])
  assert.equal(said(await answer(bea, 'accept', canceled)), 'INVITATION_NOT_FOUND')

  const { body: expired } = await invite(ada, bea.email)
  await db
    .updateTable('invitation')
    .set({ expiresAt: t.service.kernel.now() })
    .where('id', '=', expired.id)
    .execute()
  assert.equal(said(await answer(bea, 'accept', expired.id)), 'INVITATION_NOT_FOUND')
  const fresh = await invite(ada, bea.email)
  assert.equal(fresh.status, 200, 'an expired invitation does not block a new one')
  assert.equal(said(await answer(bea, 'accept', fresh.body.id)), 200)
})

test('the inviter must still be allowed to invite with this role', async () => {
  const [ada, bea, cem] = (await people(3)) as [Person, Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'owner'],
  ])
  const id = await createInvitation(t, acme, { from: bea, to: cem.email, role: 'owner' })
  const give = (role: string) =>
    ada.post(`${ORG}/update-member-role`, { memberId: acme.memberIds.get(bea), role })
  for (const role of ['admin', 'member']) {
    await give(role)
    assert.equal(said(await answer(cem, 'accept', id)), 'INVITATION_NOT_FOUND', role)
  }
  await give('owner')
  const ban = (banned: boolean) => db.updateTable('user').set({ banned }).where('id', '=', bea.id).execute()
  await ban(true)
  assert.equal(said(await answer(cem, 'accept', id)), 'INVITATION_NOT_FOUND', 'a banned inviter')
  await ban(false)
  assert.equal(said(await answer(cem, 'accept', id)), 200)
})

test('an organization has a limited number of members and of pending invitations', async () => {
  const [ada, bea, cem, dan, eve] = (await people(5)) as [Person, Person, Person, Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'member'],
    [cem, 'member'],
    [dan, 'member'],
  ])
  const id = await createInvitation(t, acme, { from: ada, to: eve.email })
  assert.equal(said(await answer(eve, 'accept', id)), 'ORGANIZATION_MEMBERSHIP_LIMIT_REACHED')
  assert.equal(await statusOf(id), 'pending')
  await invite(ada, 'two@example.com')
  await invite(ada, 'three@example.com')
  assert.equal(said(await invite(ada, 'four@example.com')), 'INVITATION_LIMIT_REACHED')
  await dan.post(`${ORG}/leave`, { organizationId: acme.id })
  assert.equal(said(await answer(eve, 'accept', id)), 200)
  assert.equal(said(await invite(ada, 'four@example.com')), 200)
  assert.equal((await ada.get(`${ORG}/list-invitations`)).body.length, 4)
  assert.equal((await ada.get(`${ORG}/list-invitations?limit=2&offset=3`)).body.length, 1)
})

test('of 20 parallel requests that accept one invitation, one adds the member', async () => {
  const [ada, bea] = (await people(2)) as [Person, Person]
  const acme = await createOrganization(t, [[ada, 'owner']])
  const id = await createInvitation(t, acme, { from: ada, to: bea.email })
  const answers = await Promise.all(Array.from({ length: 20 }, () => answer(bea, 'accept', id)))
  assert.deepEqual([...new Set(answers.map(said))].toSorted(), [200, 'INVITATION_NOT_FOUND'])
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  const row = await db
    .selectFrom('organization')
    .select('memberCount')
    .where('id', '=', acme.id)
    .executeTakeFirst()
  assert.equal(row?.memberCount, 2)
})

test('deleting an account with an unproven address deletes no invitation to that address', async () => {
  const [ada, stranger] = [await createPerson(t), await createPerson(t, { verified: false })]
  const acme = await createOrganization(t, [[ada, 'owner']])
  const id = await createInvitation(t, acme, { from: ada, to: stranger.email })
  assert.equal((await stranger.post('/api/auth/delete-user')).body.message, 'User deleted')
  assert.equal(await statusOf(id), 'pending')
})

test('deleting a user deletes the invitations from and to the user, and old ones are pruned', async () => {
  const [ada, bea, cem] = (await people(3)) as [Person, Person, Person]
  const acme = await createOrganization(t, [
    [ada, 'owner'],
    [bea, 'admin'],
  ])
  await createInvitation(t, acme, { from: bea, to: 'from@example.com' })
  await createInvitation(t, acme, { from: ada, to: cem.email })
  await createInvitation(t, acme, { from: ada, to: 'stays@example.com' })
  const list = async () =>
    (await db.selectFrom('invitation').select('email').where('organizationId', '=', acme.id).execute()).map(
      ({ email }) => email,
    )
  for (const who of [bea, cem]) assert.equal((await who.post('/api/auth/delete-user')).status, 200)
  assert.deepEqual(await list(), ['stays@example.com'])
  const prune = () => t.service.recurring.find(({ name }) => name === 'prune-invitations')?.run()
  t.advance(31 * DAY)
  await prune()
  assert.deepEqual(await list(), ['stays@example.com'])
  t.advance(2 * DAY)
  await prune()
  assert.deepEqual(await list(), [])
})

test('an old invitation that is renewed while others are pruned stays', async () => {
  const ada = await createPerson(t)
  const acme = await createOrganization(t, [[ada, 'owner']])
  const id = await createInvitation(t, acme, { from: ada, to: 'late@example.com' })
  t.advance(33 * DAY)
  const expiresAt = new Date(t.service.kernel.now().getTime() + DAY)
  const { pruned } = await db.transaction().execute(async (renewing) => {
    await renewInvitation(renewing, id, { inviterId: ada.id, addedBy: null, role: 'member', expiresAt })
    const pruned = deleteOldInvitations(db, t.service.kernel.now(), 1_000)
    await Promise.race([pruned, sleep(500)])
    // Not awaited here: it might wait for this transaction.
    return { pruned }
  })
  await pruned
  assert.equal(await statusOf(id), 'pending')
})
