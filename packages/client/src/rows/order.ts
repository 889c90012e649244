import type { Sort } from './body.ts'

type Direction = 'asc' | 'desc'
type Placed = { readonly direction?: Direction; readonly nulls?: 'first' | 'last' }
/** As supabase-js writes it. */
export type OrderOptions = { readonly ascending?: boolean; readonly nullsFirst?: boolean }

/** `{ at: 'desc', id: 'asc' }`, or a column with its options. */
export function sortOf(by: unknown, { ascending = true, nullsFirst }: OrderOptions = {}): readonly Sort[] {
  if (typeof by === 'string') {
    const nulls = nullsFirst === undefined ? {} : ({ nulls: nullsFirst ? 'first' : 'last' } as const)
    return [{ field: by, direction: ascending ? 'asc' : 'desc', ...nulls }]
  }
  const columns: Readonly<Record<string, Direction | Placed | undefined>> = { ...(by as object) } // of the caller's type
  return Object.entries(columns).flatMap(([field, how]) =>
    how === undefined
      ? []
      : [{ field, direction: 'asc', ...(typeof how === 'string' ? { direction: how } : how) } as const],
  )
}
