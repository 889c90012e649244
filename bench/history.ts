/**
 * Where processor time and memory were lost: the scenarios of the brake on commits of the history, all of them in turns in the same minutes.
 * `node bench/history.ts FROM [TO] [--points 6] [--scenario NAME …]` takes commits at equal distances between the two; run it again between two
 * neighbours that differ, until they are parent and child.
 */
import { parseArgs } from 'node:util'
import { checkOut, commitOf } from './brake/checkout.ts'
import { measureCheckouts, SCENARIOS } from './brake/measure.ts'
import { git } from './git.ts'
import { onInterruption } from './interruption.ts'
import { cost, printTable } from './table.ts'

const { values, positionals } = parseArgs({
  options: {
    points: { type: 'string', default: '6' },
    scenario: { type: 'string', multiple: true, default: Object.keys(SCENARIOS) },
  },
  allowPositionals: true,
})
const [from, to = 'HEAD'] = positionals
if (from === undefined) throw new Error('Name a commit: node bench/history.ts FROM [TO]')
const signal = onInterruption()
const commits = await commitsBetween(from, to, Number(values.points))
const made: Awaited<ReturnType<typeof checkOut>>[] = []
try {
  for (const commit of commits) {
    signal.throwIfAborted()
    made.push(await checkOut(commit))
  }
  const checkouts = made.map(({ root }, index) => ({ name: commits[index] ?? '', root }))
  const { costs, memory } = await measureCheckouts(checkouts, values.scenario, signal)
  const head = [
    'commit',
    ...[...costs.keys()].map((name) => `${name}, µs`),
    'idle MiB',
    'loaded MiB',
    'subject',
  ]
  const rows = commits.map(async (commit) => [
    commit.slice(0, 8),
    ...[...costs.values()].map((byCommit) => cost(byCommit.get(commit) ?? [])),
    `${memory.get(commit)?.idle.toFixed()}`,
    `${memory.get(commit)?.loaded.toFixed()}`,
    (await git('show', '-s', '--format=%s', commit)).slice(0, 60),
  ])
  printTable([head, ...(await Promise.all(rows))])
} finally {
  for (const { remove } of made) await remove()
}

/** The oldest first, both ends included. */
async function commitsBetween(from: string, to: string, points: number): Promise<readonly string[]> {
  const [first, last] = await Promise.all([commitOf(from), commitOf(to)])
  if (first === undefined || last === undefined) throw new Error(`This clone lacks ${from} or ${to}.`)
  const list = (await git('rev-list', '--first-parent', '--reverse', `${first}..${last}`)).split('\n')
  const all = [first, ...list.filter((commit) => commit !== '')]
  const places = Array.from({ length: points }, (_, index) =>
    Math.round((index * (all.length - 1)) / Math.max(1, points - 1)),
  )
  return [...new Set(places)].map((place) => all[place] ?? first)
}
