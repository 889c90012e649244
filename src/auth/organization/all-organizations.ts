import { type CountMode, type Total, totalBeside } from '#kernel/db/total.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { readUser } from '../admin/act-on-user.ts'
import { fail } from '../errors.ts'
import { listInvitations } from './invitation-store.ts'
import {
  listMembers,
  listMembershipsOf,
  type MembershipSummary,
  type MemberWithUser,
} from './member-store.ts'
import { pageOf } from './schemas.ts'
import {
  countOrganizations,
  findOrganization,
  type Invitation,
  type Organization,
  searchOrganizations,
} from './store.ts'

type Query = {
  readonly searchValue?: string
  readonly limit?: number
  readonly offset?: number
  readonly count?: CountMode
}
type Page = Total & {
  readonly organizations: Organization[]
  readonly limit: number
  readonly offset: number
}

/** One page of the organizations that fit, and their number. */
export async function allOrganizations({ db }: Kernel, query: Query): Promise<Page> {
  const { searchValue: search, count } = query
  const page = pageOf(query)
  const [found, counted] = await Promise.all([
    searchOrganizations(db, { search, ...page, limit: page.limit + 1 }),
    countOrganizations(db, search, count),
  ])
  return {
    organizations: found.slice(0, page.limit),
    ...totalBeside(counted, page, found.length),
    ...page,
  }
}

/** Those of one user. */
export async function organizationsOfUser(
  kernel: Kernel,
  { userId, ...query }: { readonly userId: string; readonly limit?: number; readonly offset?: number },
): Promise<MembershipSummary[]> {
  const { id } = await readUser(kernel, userId)
  return listMembershipsOf(kernel.db, id, pageOf(query))
}

/** One organization, for an administrator of the service. */
export async function readOrganization({ db }: Kernel, id: string): Promise<Organization> {
  const found = UUID.test(id) ? await findOrganization(db, { id }) : undefined
  if (found === undefined) throw fail('ORGANIZATION_NOT_FOUND')
  return found
}

type NamedPage = { readonly organizationId: string; readonly limit?: number; readonly offset?: number }

export async function allMembers(
  kernel: Kernel,
  { organizationId, ...query }: NamedPage,
): Promise<{ readonly members: MemberWithUser[]; readonly total: number }> {
  const { id, memberCount } = await readOrganization(kernel, organizationId)
  return { members: await listMembers(kernel.db, id, pageOf(query)), total: memberCount }
}

/** In any state, newest first. */
export async function allInvitations(
  kernel: Kernel,
  { organizationId, ...query }: NamedPage,
): Promise<Invitation[]> {
  const { id } = await readOrganization(kernel, organizationId)
  return listInvitations(kernel.db, id, pageOf(query))
}
