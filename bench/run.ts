/**
 * `npm run bench`: all scenarios, and again after an interruption those that are left. `npm run bench -- NAME …`: only these, anew.
 * `npm run bench -- NAME --rounds 27`: in more turns than nine, for a narrower interval. `npm run bench -- --quick`: a look at four of
 * them in three minutes. `npm run bench -- growth`: what requests cost as tables grow to a million rows, with `--rows N` or `--huge` (ten
 * million) to others. `npm run bench -- report FILE`: the page and the charts of a file.
 * `npm run bench -- peers`: installs the products to compare with.
 */
import { parseArgs } from 'node:util'
import { withServer } from './fixture.ts'
import { GROWTH, measureGrowth } from './growth/measure.ts'
import { installPeers, peersOf } from './peers/index.ts'
import { type Plan, performControl, performScenario } from './perform.ts'
import { printScenario } from './print.ts'
import { writeReport } from './report/write.ts'
import { openResults, type ResultsFile } from './results-file.ts'
import { QUICK, SCENARIOS } from './scenarios/index.ts'

const SEED = 20_261_124
const SECONDS = Number(process.env.BENCH_SECONDS ?? 1.5)
const WHOLE: Omit<Plan, 'signal'> = { rounds: 9, seconds: SECONDS, warmUp: 3, hasLatency: true, seed: SEED }
const A_LOOK: Omit<Plan, 'signal'> = { ...WHOLE, warmUp: 1, hasLatency: false }

const withoutPeers = async () => ({ sides: [], missing: {} })

const { values, positionals } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: `${WHOLE.rounds}` },
    huge: { type: 'boolean', default: false },
    rows: { type: 'string' },
  },
  allowPositionals: true,
})
const [command, ...files] = positionals
if (command === 'report') await writeReport(files[0])
else if (command === 'growth')
  await measureGrowth(Number(values.rows ?? GROWTH[values.huge ? 'huge' : 'whole']))
else if (command === 'peers') await installPeers(files)
else await measure(positionals)

async function measure(names: readonly string[]): Promise<void> {
  const unknown = names.filter((name) => !(name in SCENARIOS))
  if (unknown.length > 0)
    throw new Error(`Unknown: ${unknown.join(', ')}. There are ${Object.keys(SCENARIOS).join(', ')}.`)
  const rounds = Number(values.rounds)
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a number from 1 on.')
  const size = { ...(values.quick ? A_LOOK : WHOLE), rounds }
  const file = await openResults({ quick: values.quick, seed: size.seed, seconds: size.seconds })
  const asked = names.length > 0 ? names : values.quick ? QUICK : file.left(Object.keys(SCENARIOS))
  if (asked.length === 0) return console.log(`${file.path} has all scenarios of this commit.`)
  await withServer(async (server, signal) => {
    const plan = { ...size, signal }
    console.log(`${server.describes} · ${plan.rounds} rounds of ${plan.seconds} s, sides in turn`)
    const control = await performControl(server, plan)
    console.log(`ours against ours ${control.low.toFixed(3)} to ${control.high.toFixed(3)}`)
    for (const name of asked)
      if (!signal.aborted) await perform(name, { server, plan, control, file }).catch(reportFailure)
  })
  if (!values.quick) console.log(`\n${file.path}\nThe page and charts: npm run bench -- report ${file.path}`)
}

/** The other scenarios go on; the next run repeats this one. */
function reportFailure(error: Error): void {
  console.error(error)
  process.exitCode = 1
}

type Given = {
  readonly server: Parameters<typeof performControl>[0]
  readonly plan: Plan
  readonly control: Awaited<ReturnType<typeof performControl>>
  readonly file: ResultsFile
}

async function perform(name: string, { server, plan, control, file }: Given): Promise<void> {
  const scenario = SCENARIOS[name]
  if (scenario === undefined) return
  const at = new Date().toISOString()
  const outcome = await performScenario(scenario, server, plan, values.quick ? withoutPeers : peersOf)
  const { title, unit, target } = scenario
  const result = { title, unit, ...(target && { target }), at, control, ...outcome }
  await file.add(name, result, server.describes)
  printScenario(result, plan.seed)
}
