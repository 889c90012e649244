import { hash } from 'node:crypto'
import type { PolicyDefinition } from '#databases/drivers/management.ts'
import { literal } from '#databases/drivers/postgres/sql/parse-tree.ts'
import type { StoredPolicy } from '#databases/drivers/postgres/sql/policies/state.ts'
import { quoteName } from '#databases/drivers/quote-name.ts'

/** The comment of a policy: the definition of the request, and a digest of the stored policy, which shows later changes. */
type Mark = {
  readonly policy: MarkedPolicy
  readonly digest: string
  readonly default?: MarkedDefault
}

/** The default that a preset gave its column, as the server writes it, and the one that the column had before. */
export type MarkedDefault = { readonly own: string; readonly former: string | null }

/** A preset with its column is stored with the column's name. `insert_only_as_self` has a policy of its own. */
export type MarkedPolicy =
  | Exclude<PolicyDefinition, { preset: 'owner' | 'organization' }>
  | { readonly preset: 'owner' | 'organization'; readonly column: string }
  | Self
export type Self = { readonly preset: 'insert_only_as_self'; readonly column: string }

const MARK = 'Set by the gateway: '
/** Comments of the policies of a preset with a column begin so. */
export const markOfPreset = (preset: string): string => `${MARK}{"policy":{"preset":"${preset}",`
/** Comments of the restrictive policies of `insert_only_as_self` begin so. */
export const MARK_OF_SELF = markOfPreset('insert_only_as_self')

/** Undefined for a policy that others have made, and for a restriction that was changed: set again, its expression would permit. */
export function markOf(stored: StoredPolicy): Mark | undefined {
  const mark = readMark(stored)
  const isChanged = mark !== undefined && askedPolicy(stored, mark) === undefined
  return isChanged && !stored.permissive ? undefined : mark
}

function readMark({ comment }: StoredPolicy): Mark | undefined {
  if (comment === null || !comment.startsWith(MARK)) return undefined
  try {
    return JSON.parse(comment.slice(MARK.length))
  } catch {
    return undefined
  }
}

/** The comment of a policy as it is stored. */
export function markText(
  policy: MarkedPolicy,
  stored: StoredPolicy | undefined,
  given: MarkedDefault | undefined,
): string {
  const mark = { policy, digest: stored && digestOf(stored), default: given }
  return literal(`${MARK}${JSON.stringify(mark)}`)
}

/**
 * The policy as it was asked for, with the present name of a preset's column. Undefined when it was changed in the database since: also by
 * a new name of a column in an expression.
 */
export function askedPolicy(stored: StoredPolicy, { policy, digest }: Mark): MarkedPolicy | undefined {
  if (digest === digestOf(stored)) return policy
  const [present] = stored.columns
  if (present === undefined || !('column' in policy)) return undefined
  const { column } = policy
  // The expression of a preset begins with its column, which the server quotes where that is necessary.
  const isRenamed = [column, quoteName(column)].some((former) => {
    const before = (text: string | null) => text?.replace(present.quoted, () => former) ?? null
    return digest === digestOf({ ...stored, using: before(stored.using), check: before(stored.check) })
  })
  return isRenamed ? { ...policy, column: present.name } : undefined
}

const digestOf = ({ command, permissive, roles, using, check }: StoredPolicy): string =>
  hash('sha256', JSON.stringify([command, permissive, roles, using, check])).slice(0, 32)
