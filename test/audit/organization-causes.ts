import assert from 'node:assert/strict'
import type { Action } from '#kernel/audit/actions.ts'
import type { Answer, TestService } from '#test/harness.ts'
import { createInvitation, createOrganization, createPerson, type Person } from '#test/organizations.ts'

type OrganizationAction =
  | Extract<Action, `${'organization' | 'member' | 'invitation'}.${string}`>
  | 'organization_act.failed'
type Seen = { readonly actorId: string; readonly targetId: string; readonly answer: Answer }

/** A way to cause each act on an organization, its members or its invitations. */
export function organizationCauses(
  t: TestService,
): Readonly<Record<OrganizationAction, () => Promise<Seen>>> {
  const scene = async () => {
    const [ada, bea, cem] = [await createPerson(t), await createPerson(t), await createPerson(t)]
    const organization = await createOrganization(t, [
      [ada, 'owner'],
      [bea, 'member'],
    ])
    const invitationId = await createInvitation(t, organization, { from: ada, to: cem.email })
    const memberId = organization.memberIds.get(bea)
    return { ada, bea, cem, organization, invitationId, memberId }
  }
  const seen = async (who: Person, verb: string, body: object, targetId?: string): Promise<Seen> => {
    const answer = await who.post(`/api/auth/organization/${verb}`, body)
    assert.equal(answer.status, 200, answer.text)
    return { actorId: who.id, targetId: targetId ?? answer.body.id, answer }
  }
  return {
    'organization.created': async () => {
      const { ada } = await scene()
      return seen(ada, 'create', { name: 'New', slug: ada.id })
    },
    'organization.updated': async () => {
      const { ada } = await scene()
      return seen(ada, 'update', { data: { name: 'New' } })
    },
    'organization.deleted': async () => {
      const { ada, organization } = await scene()
      return seen(ada, 'delete', { organizationId: organization.id }, organization.id)
    },
    'member.added': async () => {
      const { cem, invitationId } = await scene()
      return seen(cem, 'accept-invitation', { invitationId }, cem.id)
    },
    'member.removed': async () => {
      const { ada, bea, memberId } = await scene()
      return seen(ada, 'remove-member', { memberIdOrEmail: memberId }, bea.id)
    },
    'member.role_changed': async () => {
      const { ada, bea, memberId } = await scene()
      return seen(ada, 'update-member-role', { memberId, role: 'admin' }, bea.id)
    },
    'organization_act.failed': async () => {
      const { ada, bea, organization } = await scene()
      const memberId = organization.memberIds.get(ada)
      const answer = await bea.post('/api/auth/organization/update-member-role', { memberId, role: 'member' })
      assert.equal(answer.status, 403, answer.text)
      return { actorId: bea.id, targetId: bea.id, answer }
    },
    'invitation.created': async () => {
      const { ada, organization } = await scene()
      return seen(ada, 'invite-member', { email: 'guest@example.com', role: 'member' }, organization.id)
    },
    'invitation.canceled': async () => {
      const { ada, invitationId, organization } = await scene()
      return seen(ada, 'cancel-invitation', { invitationId }, organization.id)
    },
    'invitation.rejected': async () => {
      const { cem, invitationId, organization } = await scene()
      return seen(cem, 'reject-invitation', { invitationId }, organization.id)
    },
  }
}
