/**
 * The brake: processor µs a request, of service and database, in comparison to the reference commit and to the last main, in turns with
 * services of all of them. Ends with code 1 if this state costs more than a tenth more. `npm run brake`, or against other commits with
 * `npm run brake -- --against COMMIT …`, or only some scenarios with `--scenario NAME …`.
 */
import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { checkOut, commitOf, lastMain } from './brake/checkout.ts'
import { type Checkout, type Costs, measureCheckouts, SCENARIOS } from './brake/measure.ts'
import { CONTROL, type Judged, judge, TOLERANCE, type Verdict, verdictOf } from './brake/verdict.ts'
import { onInterruption } from './interruption.ts'
import { cost, printTable } from './table.ts'

const ATTEMPTS = 3
/** No attempt begins later than so many seconds after the start, so that all of it takes six minutes at most. */
const LATEST = 200
const OURS = 'this state'
const AGAIN = 'this state again'

const { values } = parseArgs({
  options: {
    against: { type: 'string', multiple: true },
    scenario: { type: 'string', multiple: true, default: Object.keys(SCENARIOS) },
  },
})
const signal = onInterruption()
const others = await othersOf(values.against)
const judged = new Map<string, Judged[]>(values.scenario.map((name) => [name, []]))
await withCheckouts(others, attempt)
process.exitCode = report()

/** Names of the commits to compare with, by their full hashes. */
async function othersOf(against: readonly string[] | undefined): Promise<ReadonlyMap<string, string>> {
  const [reference = ''] = (await readFile(`${import.meta.dirname}/brake/reference`, 'utf8')).split('\n')
  const asked = against ?? [reference, await lastMain()].filter((name) => name !== undefined)
  const found = new Map<string, string>()
  for (const name of asked) {
    const commit = await commitOf(name)
    if (commit === undefined) {
      console.log(
        `\n!!! NOT MEASURABLE against ${name}: this clone lacks that commit. It needs the whole history.\n`,
      )
      continue
    }
    const role = against ? 'commit' : name === reference ? 'reference' : 'last main'
    found.set(commit, `${role} ${commit.slice(0, 8)}`)
  }
  return found
}

async function withCheckouts(
  commits: ReadonlyMap<string, string>,
  work: (checkouts: readonly Checkout[]) => Promise<void>,
): Promise<void> {
  const made: Awaited<ReturnType<typeof checkOut>>[] = []
  try {
    for (const commit of commits.keys()) {
      signal.throwIfAborted()
      made.push(await checkOut(commit))
    }
    const names = [...commits.values()]
    await work(made.map(({ root }, index) => ({ name: names[index] ?? '', root })))
  } finally {
    for (const { remove } of made) await remove()
  }
}

async function attempt(checkouts: readonly Checkout[]): Promise<void> {
  for (let count = 0; count < ATTEMPTS && process.uptime() < LATEST; count++) {
    const open = [...judged].filter(([, attempts]) => verdictOf(attempts, ATTEMPTS) === undefined)
    if (open.length === 0) return
    const ours = [OURS, AGAIN].map((name) => ({ name, root: undefined }))
    const names = open.map(([name]) => name)
    const { costs } = await measureCheckouts([...ours, ...checkouts], names, signal)
    for (const name of names) judged.get(name)?.push(judgeCosts(costs, name, checkouts))
    print(costs, checkouts)
  }
}

function judgeCosts(costs: Costs, scenario: string, checkouts: readonly Checkout[]): Judged {
  const of = (name: string) => costs.get(scenario)?.get(name) ?? []
  const theirs = Object.fromEntries(checkouts.map(({ name }) => [name, of(name)]))
  return judge({ ours: of(OURS), again: of(AGAIN), others: theirs })
}

function print(costs: Costs, checkouts: readonly Checkout[]): void {
  const head = [
    'processor µs a request',
    OURS,
    'again',
    'A/A',
    ...checkouts.flatMap(({ name }) => [name, 'ratio']),
  ]
  const rows = [...costs].map(([scenario, bySide]) => {
    const { control = Number.NaN, ratios = {} } = judged.get(scenario)?.at(-1) ?? {}
    const of = (name: string) => cost(bySide.get(name) ?? [])
    const others = checkouts.flatMap(({ name }) => {
      const { low, middle, high } = ratios[name] ?? { low: 0, middle: 0, high: 0 }
      return [of(name), `${middle.toFixed(3)} (${low.toFixed(2)}–${high.toFixed(2)})`]
    })
    return [scenario, of(OURS), of(AGAIN), control.toFixed(3), ...others]
  })
  printTable([head, ...rows])
}

/** Prints the verdicts and returns the exit code. */
function report(): number {
  const verdicts = [...judged].map(([name, attempts]): [string, Verdict] => [
    name,
    verdictOf(attempts, attempts.length) ?? 'not measurable',
  ])
  const namesOf = (verdict: Verdict) =>
    verdicts.filter(([, found]) => found === verdict).map(([name]) => name)
  for (const name of namesOf('not measurable'))
    console.log(
      `\n!!! NOT MEASURABLE: ${name}. Two processes of the same state differ by more than ${CONTROL * 100} %, on a busy machine. No verdict.\n`,
    )
  for (const name of namesOf('dearer')) {
    const against = judged
      .get(name)
      ?.findLast(({ dearer }) => dearer.length > 0)
      ?.dearer.join(' and ')
    console.log(`\n!!! SLOWER: ${name} costs more than ${TOLERANCE * 100} % more than ${against}.\n`)
  }
  const passed = namesOf('passed')
  if (passed.length > 0) console.log(`Passed in ${process.uptime().toFixed()} s: ${passed.join('; ')}.`)
  return namesOf('dearer').length > 0 ? 1 : 0
}
