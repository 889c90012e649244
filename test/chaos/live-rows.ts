/**
 * `node test/chaos/live-rows.ts [--runs N] [--seed S] [--kills K] [--crowds C]` plays writers of live rows beside pages that follow them, on a PostgreSQL
 * server and two services of its own, breaks connections at random, kills processes in every K-th run and has five hundred pages in every
 * C-th (0: in none). Ends with 1 after the
 * first run in which a page does not show the rows of a fetch, or was shown what a fetch refuses. `--seed` of that run plays its plan again, but not its
 * timing. Ctrl-C ends after the run.
 */
import { parseArgs } from 'node:util'
import { showProgress } from '#cli/progress.ts'
import { planOf } from './plan.ts'
import { play } from './play.ts'
import { createWorld } from './world.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    kills: { type: 'string', default: '8' },
    crowds: { type: 'string', default: '35' },
  },
})
const [runs, first] = [Number(values.runs), Number(values.seed)]
const [kills, crowds] = [Number(values.kills), Number(values.crowds)]

await using cleanups = new AsyncDisposableStack()
const world = await createWorld({ after: (clean) => cleanups.defer(clean) })
const progress = await showProgress(runs)
const counts = new Map<string, number>()
const began = performance.now()
let seed = first
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    isInterrupted = true
  })
try {
  for (; seed < first + runs && !isInterrupted; seed++) {
    const told = await play(world, planOf(seed, world.people, kills, crowds))
    for (const [name, count] of Object.entries(told)) counts.set(name, (counts.get(name) ?? 0) + count)
    progress.advance(1)
  }
} catch (error) {
  process.exitCode = 1
  console.error(
    `Run ${seed - first + 1} failed. Its plan: --runs 1 --seed ${seed} --kills ${kills} --crowds ${crowds}`,
  )
  console.error(error)
} finally {
  progress.end()
}
const seconds = (performance.now() - began) / 1_000
console.log(`${seed - first} runs, seeds from ${first}, in ${seconds.toFixed(0)} s`)
console.log([...counts].map(([name, count]) => `${name} ${count}`).join(' · '))
