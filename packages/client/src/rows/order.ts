import type { Sort } from './body.ts'

type Direction = 'asc' | 'desc'
type Placed = { readonly direction?: Direction; readonly nulls?: 'first' | 'last' }
/** As supabase-js writes it. */
export type OrderOptions = { readonly ascending?: boolean; readonly nullsFirst?: boolean }

/** `{ at: 'desc', id: 'asc' }`, or a column with its options. */
export function sortOf(by: unknown, { ascending = true, nullsFirst }: OrderOptions = {}): readonly Sort[] {
  if (typeof by === 'string')
    return [
      sorted(
        by,
        ascending ? 'asc' : 'desc',
        nullsFirst === undefined ? undefined : nullsFirst ? 'first' : 'last',
      ),
    ]
  const columns: Readonly<Record<string, Direction | Placed | undefined>> = { ...(by as object) } // of the caller's type
  return Object.entries(columns).flatMap(([column, how]) => {
    if (how === undefined) return []
    return typeof how === 'string'
      ? [sorted(column, how)]
      : [sorted(column, how.direction ?? 'asc', how.nulls)]
  })
}

const sorted = (field: string, direction: Direction, nulls?: 'first' | 'last'): Sort => ({
  field,
  direction,
  ...(nulls && { nulls }),
})
