import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Actor, type Answer, BROWSER, confirm, linkIn, testService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson } from '#test/organizations.ts'

const t = await testService({
  config: { auth: { organization: { roles: { clerk: { invitation: ['create'] }, guest: {} } } } },
})
const { db } = t.service.kernel
const ORG = '/api/auth/organization'
const said = ({ status, body }: Answer) => (status === 200 ? 200 : body?.code)
const invite = (by: Actor, email: string, role = 'member') => by.post(`${ORG}/invite-member`, { email, role })
const accept = async (by: Actor, invitationId: string) =>
  said(await by.post(`${ORG}/accept-invitation`, { invitationId }))
const statusOf = async (id: string) =>
  (await db.selectFrom('invitation').select('status').where('id', '=', id).executeTakeFirst())?.status

/** An unproven person who owns an organization. */
async function unprovenOwner() {
  const eve = await createPerson(t, { verified: false })
  const acme = await createOrganization(t, [[eve, 'owner']])
  return { eve, acme }
}

test('a role that holds permissions is given only by who has a proven address', async () => {
  const { eve } = await unprovenOwner()
  for (const role of ['owner', 'admin', 'clerk', 'member,admin'])
    assert.equal(
      said(await invite(eve, `${role.replace(',', '-')}@example.com`, role)),
      'EMAIL_NOT_VERIFIED',
      role,
    )
  assert.deepEqual(await t.mails(), [])
  for (const role of ['member', 'guest'])
    assert.equal(said(await invite(eve, `${role}@example.com`, role)), 200)
  await t.mails()

  const bea = await createPerson(t)
  const acme = await createOrganization(t, [
    [eve, 'owner'],
    [bea, 'member'],
  ])
  const change = (role: string) =>
    eve.post(`${ORG}/update-member-role`, { memberId: acme.memberIds.get(bea), role }).then(said)
  assert.deepEqual(
    [await change('owner'), await change('clerk'), await change('guest')],
    ['EMAIL_NOT_VERIFIED', 'EMAIL_NOT_VERIFIED', 200],
  )
})

test('the word of an admin is no proof: the role is still refused', async () => {
  const { eve } = await unprovenOwner()
  await db.updateTable('user').set({ emailVerified: true }).where('id', '=', eve.id).execute()
  await t.service.kernel.coherence.settle()
  assert.equal(said(await invite(eve, 'heir@example.com', 'admin')), 'EMAIL_NOT_VERIFIED')
})

test('an invitation with such a role is worth nothing when its inviter is not proven any more', async () => {
  const [ada, bea, cleo] = [await createPerson(t), await createPerson(t), await createPerson(t)]
  const acme = await createOrganization(t, [[ada, 'owner']])
  const asAdmin = await createInvitation(t, acme, { from: ada, to: bea.email, role: 'admin' })
  const asMember = await createInvitation(t, acme, { from: ada, to: cleo.email })
  await db.updateTable('user').set({ emailProvenAt: null }).where('id', '=', ada.id).execute()
  assert.equal(await accept(bea, asAdmin), 'INVITATION_NOT_FOUND')
  assert.equal(await statusOf(asAdmin), 'pending')
  assert.equal(await accept(cleo, asMember), 200)
})

test('an unproven inviter is "someone" on the page, and no answer to the recipient names the address', async () => {
  const { eve, acme } = await unprovenOwner()
  const bea = await createPerson(t)
  const id = await createInvitation(t, acme, { from: eve, to: bea.email })
  const page = await bea.get(`/api/auth/confirm/invitation?id=${id}`, { headers: BROWSER })
  assert.match(page.text, /Someone invites/)
  const answers = [
    await bea.get(`${ORG}/get-invitation?id=${id}`),
    await bea.get(`${ORG}/list-user-invitations`),
  ]
  assert.deepEqual([answers[0]?.body.inviterEmail, answers[1]?.body[0].inviterEmail], [null, null])
  for (const { text } of [page, ...answers]) assert.ok(!text.includes(eve.email))
})

test('members see whether the address of a member is verified', async () => {
  const [ada, eve] = [await createPerson(t), await createPerson(t, { verified: false })]
  await createOrganization(t, [
    [ada, 'owner'],
    [eve, 'member'],
  ])
  const { body } = await ada.get(`${ORG}/list-members`)
  const seen = body.members.map(({ user }: { user: { emailVerified: boolean } }) => user.emailVerified)
  assert.deepEqual(seen, [true, false])
})

test('the first proof of an address withdraws the invitations that the account has sent', async () => {
  for (const way of ['reset', 'link'] as const) {
    const eve = await t.signUp('Eve')
    const bea = await createPerson(t)
    await eve.post(`${ORG}/create`, { name: 'Acme', slug: `acme-${way}` })
    const { body: sent } = await invite(eve, bea.email)
    await t.mails()
    if (way === 'reset') {
      await t.anon.post('/api/auth/forget-password', { email: eve.email })
      const token = linkIn((await t.mails()).at(-1) ?? '')
        .split('/')
        .at(-1)
      const reset = await t.anon.post('/api/auth/reset-password', {
        token,
        newPassword: 'another horse staple',
      })
      assert.equal(reset.status, 200)
    } else {
      await t.anon.post('/api/auth/send-verification-email', { email: eve.email })
      const link = linkIn((await t.mails()).at(-1) ?? '')
      assert.equal((await confirm(t.anon, link, { newPassword: 'another horse staple' })).status, 200)
    }
    assert.equal(await statusOf(sent.id), 'canceled')
    assert.equal(await accept(bea, sent.id), 'INVITATION_NOT_FOUND')
    const audited = await db
      .selectFrom('auditEvent')
      .select('action')
      .where('action', '=', 'invitation.canceled')
      .where('organizationId', '=', sent.organizationId)
      .execute()
    assert.equal(audited.length, 1)
    await t.mails()
  }
})

test('the owner of the account keeps the invitations when the link is opened with a session of the account', async () => {
  const ada = await t.signUp('Ada')
  await ada.post(`${ORG}/create`, { name: 'Acme', slug: 'acme-kept' })
  const { body: sent } = await invite(ada, 'kept@example.com')
  await t.mails()
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  assert.equal((await confirm(ada, linkIn((await t.mails()).at(-1) ?? ''))).status, 200)
  assert.equal(await statusOf(sent.id), 'pending')
})
