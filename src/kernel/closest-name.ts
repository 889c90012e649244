/** The candidate that an unknown name probably stands for: at most one edit for every three letters, upper and lower case alike. */
export function closestName(name: string, candidates: readonly string[]): string | undefined {
  if (name.length > MAX_LENGTH) return undefined
  const bound = Math.max(1, Math.floor(name.length / 3))
  const ranked = candidates.map((candidate) => ({
    candidate,
    edits: distance(name.toLowerCase(), candidate.toLowerCase()),
  }))
  return ranked.filter(({ edits }) => edits <= bound).sort((a, b) => a.edits - b.edits)[0]?.candidate
}

/** The member that an unknown one probably stands for: also `client_name` for `client`, and `is_active` for `active`. */
export const meantMember = (name: string, known: readonly string[]): string | undefined =>
  closestName(name, known) ??
  known.find((one) => one.startsWith(`${name}_`) || one === `is_${name}` || one === FAMILIAR.get(name))

/** Names that other parts of the interface or other products use. Ignored, they would read all rows, make another column, or leave a key its rights. */
const FAMILIAR: ReadonlyMap<string, string> = new Map([
  ['filter', 'conditions'],
  ['filters', 'conditions'],
  ['fields', 'columns'],
  ['default_value', 'default_expression'],
  ['not_null', 'nullable'],
  ['upsert', 'on_conflict'],
  ['events', 'route_keys'],
  ['event_types', 'route_keys'],
  ['scopes', 'rights'],
  ['permissions', 'rights'],
  ['enabled', 'is_active'],
  ['disabled', 'is_active'],
])

/** A request may contain names of any length, and the work grows with the length. */
const MAX_LENGTH = 63

/** Insertions, deletions, replacements and swaps of neighbours that turn one name into the other. */
function distance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, j) => j)]
  const cell = (i: number, j: number) => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1]
      const swapped = from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      const replaced = cell(i - 1, j - 1) + (same ? 0 : 1)
      row[j] = Math.min(
        cell(i - 1, j) + 1,
        cell(i, j - 1) + 1,
        replaced,
        swapped ? cell(i - 2, j - 2) + 1 : replaced,
      )
    }
  }
  return cell(from.length, to.length)
}
