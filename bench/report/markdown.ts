import type { RunResults } from '../results.ts'

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)
  return lines.join('\n')
}

const list = (facts: Readonly<Record<string, string>>): string =>
  Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')

/** When, where and of which state something was measured. */
export const measuredOf = ({ date, commit, changed, machine, versions }: RunResults): string =>
  `Measured on ${date} at ${commit}${changed ? ', with changed files' : ''}: ${list(machine)}; ${list(versions)}`
