import type { TSchema } from 'typebox'
import { outline } from './outline.ts'

/** What was probably meant by an unknown setting: a neighbour of nearly that name, or the one that has it elsewhere. */
export function suggest(
  settings: TSchema,
  setting: string,
  neighbours: readonly string[],
): string | undefined {
  const path = setting.split('.')
  const name = path.pop() ?? ''
  const near = nearest(name, neighbours)
  if (near) return [...path, near].join('.')
  const elsewhere = outline(settings).filter(({ path }) => path.at(-1) === name)
  return elsewhere.length === 1 ? elsewhere[0]?.path.join('.') : undefined
}

/** The candidate within one edit for every three letters. */
function nearest(name: string, candidates: readonly string[]): string | undefined {
  const bound = Math.max(1, Math.floor(name.length / 3))
  const ranked = candidates.map((candidate) => ({ candidate, edits: distance(name, candidate) }))
  return ranked.filter(({ edits }) => edits <= bound).sort((a, b) => a.edits - b.edits)[0]?.candidate
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one into the other. */
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
