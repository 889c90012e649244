import type { Place } from './problems.ts'

/**
 * The unparsed values of the file or the environment, with their places. Scalars are text, as in the environment; `isPlain` ones are
 * written in the file without quotes.
 */
export type Tree =
  | { readonly kind: 'text'; readonly text: string; readonly place: Place; readonly isPlain?: boolean }
  | { readonly kind: 'list'; readonly items: readonly Tree[]; readonly place: Place }
  | { readonly kind: 'section'; readonly entries: ReadonlyMap<string, Tree>; readonly place: Place }
  /** Null or empty: counts as absent. */
  | { readonly kind: 'nothing'; readonly place: Place }
  /** Its problem has been reported. */
  | { readonly kind: 'faulty'; readonly place: Place }

/** Merges sections; any other value replaces the one below. */
export function merge(under: Tree, over: Tree): Tree {
  if (over.kind === 'nothing') return under
  if (under.kind !== 'section' || over.kind !== 'section') return over
  const entries = new Map(under.entries)
  for (const [name, tree] of over.entries) {
    const below = entries.get(name)
    entries.set(name, below ? merge(below, tree) : tree)
  }
  return { ...under, entries }
}

/** `value` under the names of `path`. */
export const nest = (path: readonly string[], value: Tree): Tree =>
  path.reduceRight<Tree>(
    (inner, name) => ({ kind: 'section', entries: new Map([[name, inner]]), place: value.place }),
    value,
  )

export function treeAt(tree: Tree, [name, ...path]: readonly string[]): Tree | undefined {
  if (name === undefined) return tree
  const inner =
    tree.kind === 'list'
      ? tree.items[Number(name)]
      : tree.kind === 'section'
        ? tree.entries.get(name)
        : undefined
  return inner && treeAt(inner, path)
}

/** The place of each value, by its dotted name. A list is one value. */
export function placesIn(tree: Tree, path: readonly string[] = []): readonly (readonly [string, Place])[] {
  if (tree.kind === 'nothing') return []
  if (tree.kind !== 'section') return [[path.join('.'), tree.place]]
  return [...tree.entries].flatMap(([name, inner]) => placesIn(inner, [...path, name]))
}

/** The tree of a value that JSON.parse returned. */
export function treeOfJson(value: unknown, place: Place): Tree {
  if (value === null) return { kind: 'nothing', place }
  if (Array.isArray(value))
    return { kind: 'list', items: value.map((item) => treeOfJson(item, place)), place }
  if (typeof value !== 'object') return { kind: 'text', text: String(value), place }
  const entries = Object.entries(value as object).map(
    ([name, inner]) => [name, treeOfJson(inner, place)] as const,
  )
  return { kind: 'section', entries: new Map(entries), place }
}
