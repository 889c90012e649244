import type { Kernel } from '#kernel/kernel.ts'
import { pageOf } from './schemas.ts'
import { countOrganizations, type Organization, searchOrganizations } from './store.ts'

type Query = { readonly searchValue?: string; readonly limit?: number; readonly offset?: number }
type Page = {
  readonly organizations: Organization[]
  readonly total: number
  readonly limit: number
  readonly offset: number
}

/** One page of the organizations that fit, and their number. */
export async function allOrganizations({ db }: Kernel, query: Query): Promise<Page> {
  const { searchValue: search } = query
  const page = pageOf(query)
  const [organizations, total] = await Promise.all([
    searchOrganizations(db, { search, ...page }),
    countOrganizations(db, search),
  ])
  return { organizations, total, ...page }
}
