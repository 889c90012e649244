import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { issueTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import { type Answer, testService } from '#test/harness.ts'
import { heldRows } from '#test/held-rows.ts'
import { createInvitation, createOrganization, createPerson, type Person } from '#test/organizations.ts'

const t = await testService()
const { kernel } = t.service
const { db } = kernel
const rows = heldRows(t.controlUrl)
after(rows.close)
const AUTH = '/api/auth'

/** Eve's account is unproven: a stranger may have opened it. It owns an organization, as Ada does, and has invited Dan. */
type Scene = {
  readonly organizationId: string
  readonly ada: Person
  readonly eve: Person
  readonly dan: Person
  readonly invitationId: string
}

async function newScene(): Promise<Scene> {
  const [ada, eve, dan] = [
    await createPerson(t),
    await createPerson(t, { verified: false }),
    await createPerson(t),
  ]
  const organization = await createOrganization(t, [
    [ada, 'owner'],
    [eve, 'owner'],
  ])
  const invitationId = await createInvitation(t, organization, { from: eve, to: dan.email })
  return { organizationId: organization.id, ada, eve, dan, invitationId }
}

type Verb = (scene: Scene) => Promise<Answer>

const accept: Verb = ({ dan, invitationId }) =>
  dan.post(`${AUTH}/organization/accept-invitation`, { invitationId })
const revoke: Verb = ({ ada, invitationId }) =>
  ada.post(`${AUTH}/organization/cancel-invitation`, { invitationId })

const ticketFor = (purpose: 'reset-password' | 'verify-email', { eve }: Scene): Promise<string> =>
  issueTicket(kernel, purpose, {
    ...{ userId: eve.id, address: eve.email, sessionId: null, lifetime: 3_600_000, payload: {} },
  })

/** The ways of proving Eve's address for the first time. */
const PROOFS: Readonly<Record<string, Verb>> = {
  'a reset by mail': async (scene) => {
    const token = await ticketFor('reset-password', scene)
    return t.anon.post(`${AUTH}/reset-password`, { token, newPassword: 'chosen by the owner' })
  },
  'a link of a mail': async (scene) =>
    t.anon.get(`${AUTH}/verify-email?token=${await ticketFor('verify-email', scene)}`),
  'a password that its link has asked for': async (scene) => {
    const token = await ticketFor('verify-email', scene)
    return t.anon.post(`${AUTH}/verify-email`, { token, newPassword: 'chosen by the owner' })
  },
  'the secret of an invitation to Eve': async ({ eve }) => {
    const owner = await createPerson(t)
    const other = await createOrganization(t, [[owner, 'owner']])
    const id = await createInvitation(t, other, { from: owner, to: eve.email })
    const secretHash = tokenHash('secret')
    await db.updateTable('invitation').set({ secretHash }).where('id', '=', id).execute()
    return eve.post(`${AUTH}/organization/accept-invitation`, { invitationId: `${id}.secret` })
  },
}

/** How the invitation has ended, who is a member by it, and the acts that the organization's trail shows. */
async function outcomeOf({ organizationId, dan, invitationId }: Scene) {
  const { status } = await db
    .selectFrom('invitation')
    .select('status')
    .where('id', '=', invitationId)
    .executeTakeFirstOrThrow()
  const members = await db
    .selectFrom('member')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('userId', '=', dan.id)
    .execute()
  const acts = await db
    .selectFrom('auditEvent')
    .select('action')
    .where('organizationId', '=', organizationId)
    .where('action', 'in', ['member.added', 'invitation.canceled'])
    .execute()
  return { status, members: members.length, acts: acts.map(({ action }) => action) }
}

const ACCEPTED = { status: 'accepted', members: 1, acts: ['member.added'] }
const WITHDRAWN = { status: 'canceled', members: 0, acts: ['invitation.canceled'] }

const said = ({ status, body }: Answer): unknown => (status === 200 ? 200 : body?.code)
const GONE = 'INVITATION_NOT_FOUND'

/** Who comes first of accepting (A), revoking (R) and the first proof (P) decides; the proof itself always succeeds. */
const ORDERS = ['ARP', 'APR', 'RAP', 'RPA', 'PAR', 'PRA'] as const

for (const [name, prove] of Object.entries(PROOFS))
  test(`nobody becomes a member by an invitation that was withdrawn, by its revocation or by the first proof of its sender: ${name}`, async () => {
    for (const order of ORDERS) {
      const scene = await newScene()
      const verbs = { A: accept, R: revoke, P: prove }
      const names = [...order] as ('A' | 'R' | 'P')[] // the characters of these texts
      const answers = await rows.inOrder(
        scene.organizationId,
        names.map((each) => () => verbs[each](scene)),
      )
      const expected = names.map((each, index) => (each === 'P' || index === 0 ? 200 : GONE))
      assert.deepEqual(answers.map(said), expected, order)
      assert.deepEqual(await outcomeOf(scene), order.startsWith('A') ? ACCEPTED : WITHDRAWN, order)
    }
  })

test('the same without an order: whoever is told of the membership has it, and nobody else', async () => {
  for (const [name, prove] of Object.entries(PROOFS))
    for (let round = 0; round < 5; round++) {
      const scene = await newScene()
      const [accepted, revoked, proven] = await Promise.all([accept(scene), revoke(scene), prove(scene)])
      assert.equal(proven.status, 200, proven.text)
      const isMember = accepted.status === 200
      assert.deepEqual(await outcomeOf(scene), isMember ? ACCEPTED : WITHDRAWN, name)
      assert.ok(!isMember || said(revoked) === GONE, `${name}: ${revoked.text}`)
    }
})
