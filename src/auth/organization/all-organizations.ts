import { type CountMode, type Total, totalBeside } from '#kernel/db/total.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { readUser } from '../admin/act-on-user.ts'
import { listMembershipsOf, type MembershipSummary } from './member-store.ts'
import { pageOf } from './schemas.ts'
import { countOrganizations, type Organization, searchOrganizations } from './store.ts'

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
