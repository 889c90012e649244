import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getEndpoints } from 'better-auth/api'
import { createAuthClient } from 'better-auth/client'
import { organizationClient } from 'better-auth/client/plugins'
import { organization } from 'better-auth/plugins/organization'
import { getEndpoints as getEndpoints12 } from 'better-auth-1.2/api'
import { createAuthClient as createAuthClient12 } from 'better-auth-1.2/client'
import { organizationClient as organizationClient12 } from 'better-auth-1.2/client/plugins'
import { organization as organization12 } from 'better-auth-1.2/plugins/organization'
import { testService } from '#test/harness.ts'
import { createPerson } from '#test/organizations.ts'
import { done, type Outcome, refused, VERSIONS, type Version } from './clients.ts'
import { type Endpoint, isForClients } from './endpoints.ts'
import { createPlainFetch } from './fetches.ts'

const t = await testService()

type Answer<T> = Promise<Outcome<T>>
type Organization = {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly metadata?: unknown
}
type Member = {
  readonly id: string
  readonly userId: string
  readonly organizationId: string
  readonly role: string
}
type Invitation = {
  readonly id: string
  readonly email: string
  readonly status: string
  readonly expiresAt: Date
}
type ById = { organizationId: string }

/** The calls of applications. The compiler checks that the types of both versions match. */
type Calls = {
  create(body: {
    name: string
    slug: string
    metadata?: Record<string, unknown>
  }): Answer<Organization | null>
  update(body: ById & { data: { name: string } }): Answer<Organization | null>
  delete(body: ById): Answer<unknown>
  setActive(body: { organizationId?: string | null; organizationSlug?: string }): Answer<Organization | null>
  getFullOrganization(asked?: { query: ById }): Answer<(Organization & { members: Member[] }) | null>
  list(): Answer<Organization[]>
  checkSlug(body: { slug: string }): Answer<{ status: boolean }>
  inviteMember(body: { email: string; role: 'member' | 'admin'; resend?: boolean }): Answer<Invitation>
  cancelInvitation(body: { invitationId: string }): Answer<unknown>
  acceptInvitation(body: { invitationId: string }): Answer<{ member: Member } | null>
  rejectInvitation(body: { invitationId: string }): Answer<{ member: null }>
  getInvitation(asked: {
    query: { id: string }
  }): Answer<Invitation & { organizationName: string; organizationSlug: string; inviterEmail: string }>
  listInvitations(asked?: { query: ById }): Answer<Invitation[]>
  removeMember(body: { memberIdOrEmail: string }): Answer<{ member: Member } | null>
  updateMemberRole(body: { memberId: string; role: 'member' | 'admin' | 'owner' }): Answer<unknown>
  getActiveMember(): Answer<Member>
  leave(body: ById): Answer<unknown>
  hasPermission(body: {
    permissions: { member: ('create' | 'update' | 'delete')[] }
  }): Answer<{ success: boolean }>
  checkRolePermission(asked: { role: 'admin' | 'member'; permissions: { member: ['delete'] } }): boolean
}

const optionsOf = (token: string, customFetchImpl: typeof fetch) => ({
  baseURL: t.url,
  fetchOptions: { customFetchImpl, auth: { type: 'Bearer' as const, token } },
})
const newClient = (options: object) => createAuthClient({ ...options, plugins: [organizationClient()] })
// The types of this plugin of 1.2 do not compile under `exactOptionalPropertyTypes`.
const newClient12 = (options: object) =>
  createAuthClient12({ ...options, plugins: [organizationClient12() as never] }) as unknown as {
    readonly organization: Calls
  }

async function newVisitor(version: Version) {
  const person = await createPerson(t)
  const { fetch, calls } = createPlainFetch()
  const options = optionsOf(person.token, fetch)
  const client = newClient(options)
  const known: Calls = version === '1.7.7' ? client.organization : newClient12(options).organization
  return { ...person, calls, client: known, client17: client }
}

/** Paths of the plugin's own server that a client can call. */
function pathsOf(version: Version): string[] {
  const context = new Promise<never>(() => {})
  const { api } =
    version === '1.7.7'
      ? getEndpoints(context, { plugins: [organization()] })
      : getEndpoints12(context, { plugins: [organization12() as never] })
  const endpoints: Endpoint[] = Object.values(api)
  return endpoints
    .filter(isForClients)
    .flatMap(({ path = [] }) => path)
    .filter((path) => path.startsWith('/organization/'))
}

for (const version of VERSIONS) {
  test(`better-auth ${version}: drives every call of the organization plugin`, async () => {
    const [ada, bea, cem] = [await newVisitor(version), await newVisitor(version), await newVisitor(version)]
    const slug = `acme-${version.replaceAll('.', '-')}`
    assert.equal(done(await ada.client.checkSlug({ slug })).status, true)
    const acme = done(await ada.client.create({ name: 'Acme', slug, metadata: { plan: 'free' } }))
    assert.ok(acme)
    const organizationId = acme.id
    assert.deepEqual([acme.name, acme.slug, acme.metadata], ['Acme', slug, '{"plan": "free"}'])
    const taken = await ada.client.checkSlug({ slug })
    assert.partialDeepStrictEqual(refused(taken), { status: 400, code: 'ORGANIZATION_SLUG_ALREADY_TAKEN' })
    assert.equal(
      done(await ada.client.update({ organizationId, data: { name: 'Acme Inc' } }))?.name,
      'Acme Inc',
    )
    assert.deepEqual(
      done(await ada.client.list()).map(({ id }) => id),
      [organizationId],
    )
    assert.equal(done(await ada.client.setActive({ organizationId: null })), null)
    assert.equal(done(await ada.client.getFullOrganization()), null)
    assert.equal(done(await ada.client.setActive({ organizationSlug: slug }))?.id, organizationId)

    const invited = done(await ada.client.inviteMember({ email: bea.email, role: 'member' }))
    assert.deepEqual([invited.email, invited.status], [bea.email, 'pending'])
    const again = await ada.client.inviteMember({ email: bea.email, role: 'member' })
    assert.equal(refused(again).code, 'USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION')
    done(await ada.client.inviteMember({ email: bea.email, role: 'admin', resend: true }))
    const canceled = done(await ada.client.inviteMember({ email: 'guest@example.com', role: 'member' }))
    done(await ada.client.cancelInvitation({ invitationId: canceled.id }))
    const rejected = done(await ada.client.inviteMember({ email: cem.email, role: 'member' }))
    assert.equal(done(await cem.client.rejectInvitation({ invitationId: rejected.id })).member, null)
    assert.equal(done(await ada.client.listInvitations()).length, 3)

    const shown = done(await bea.client.getInvitation({ query: { id: invited.id } }))
    assert.deepEqual(
      [shown.organizationName, shown.organizationSlug, shown.inviterEmail],
      ['Acme Inc', slug, ada.email],
    )
    const accepted = done(await bea.client.acceptInvitation({ invitationId: invited.id }))
    assert.deepEqual([accepted?.member.userId, accepted?.member.role], [bea.id, 'admin'])
    const own = done(await bea.client.getActiveMember())
    assert.deepEqual([own.id, own.role], [accepted?.member.id, 'admin'])
    const may = async () =>
      done(await bea.client.hasPermission({ permissions: { member: ['delete'] } })).success
    assert.equal(
      await may(),
      bea.client.checkRolePermission({ role: 'admin', permissions: { member: ['delete'] } }),
    )
    done(await ada.client.updateMemberRole({ memberId: own.id, role: 'member' }))
    assert.equal(await may(), false)
    const full = done(await bea.client.getFullOrganization({ query: { organizationId } }))
    assert.deepEqual(
      full?.members.map(({ userId }) => userId),
      [ada.id, bea.id],
    )
    if (version === '1.7.7') {
      const { organization: calls } = bea.client17
      const page = done(await calls.listMembers({ query: { limit: 1, offset: 1 } }))
      assert.deepEqual([page?.members.map(({ userId }) => userId), page?.total], [[bea.id], 2])
      assert.equal(done(await calls.getActiveMemberRole({ query: {} }))?.role, 'member')
      assert.deepEqual(done(await calls.listUserInvitations()), [])
      assert.equal(done(await calls.getOrganization({ query: { organizationId } }))?.slug, slug)
    }

    assert.equal(
      refused(await ada.client.leave({ organizationId })).code,
      'YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER',
    )
    done(await bea.client.leave({ organizationId }))
    assert.partialDeepStrictEqual(
      refused(await bea.client.getFullOrganization({ query: { organizationId } })),
      {
        status: 403,
        code: 'USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION',
      },
    )
    const back = done(await ada.client.inviteMember({ email: bea.email, role: 'member' }))
    done(await bea.client.acceptInvitation({ invitationId: back.id }))
    assert.equal(done(await ada.client.removeMember({ memberIdOrEmail: bea.email }))?.member.userId, bea.id)
    assert.equal(done(await ada.client.delete({ organizationId })), organizationId)
    assert.deepEqual(done(await ada.client.list()), [])

    const used = [ada, bea, cem]
      .flatMap(({ calls }) => calls)
      .flatMap((call) => /^\w+ \/api\/auth(\S+) 200$/.exec(call)?.[1] ?? [])
    assert.deepEqual(
      pathsOf(version).filter((path) => !used.includes(path)),
      [],
    )
  })
}
