import { showProgress } from '#cli/progress.ts'
import { type Loader, startLoader } from './load/loader.ts'
import { rowByPost } from './loads.ts'
import type { Latency, ScenarioResult, SideResult } from './results.ts'
import type { Bench, Scenario } from './scenario.ts'
import type { Server } from './server.ts'
import { type Service, startService } from './service.ts'
import { httpSide, OURS } from './sides.ts'
import { bootstrap, type Interval, median, ratios } from './statistics.ts'
import { resultOf, type Side, type Turn, takeRound } from './turns.ts'

export type Plan = {
  readonly rounds: number
  readonly seconds: number
  /** Uncounted turns of each side, until V8 has compiled it. */
  readonly warmUp: number
  readonly hasLatency: boolean
  readonly seed: number
  /** Ends the rounds, so that everything is removed. */
  readonly signal: AbortSignal
}

/** Shares of the maximum at which latency is measured. */
const SHARES = [0.5, 0.7, 0.9]

/** Ours against ours: two processes of the service on one server, a row by key. What it shows is the noise of everything below. */
export async function performControl(server: Server, plan: Plan): Promise<Interval> {
  const loader = startLoader()
  const services: Service[] = []
  try {
    for (let count = 0; count < 2; count++) services.push(await startService(server))
    const sides = services.map((service, index) =>
      httpSide(loader, { name: `${index}`, pid: service.pid, about: OURS, ...rowByPost(service) }),
    )
    const turns = await performRounds(sides, server, plan)
    const [one = [], other = []] = sides.map((side) => turns.get(side)?.map(resultOf))
    return bootstrap(ratios(one, other), plan.seed)
  } finally {
    for (const service of services) await service.stop()
    await loader.end()
  }
}

type Outcome = Pick<ScenarioResult, 'sides' | 'missing'>

/** Performs a scenario with a service of its own. `peersOf` starts the peers that are installed. */
export async function performScenario(
  scenario: Scenario,
  server: Server,
  plan: Plan,
  peersOf: (
    scenario: Scenario,
    bench: Bench,
  ) => Promise<{ sides: readonly Side[]; missing: Outcome['missing'] }>,
): Promise<Outcome> {
  const cleanups = new AsyncDisposableStack()
  try {
    const service = await startService(server, scenario.settings)
    cleanups.defer(service.stop)
    const loader = startLoader()
    cleanups.defer(loader.end)
    const bench = { server, service, loader, after: (clean: () => Promise<void>) => cleanups.defer(clean) }
    const ours = await scenario.open(bench)
    const { sides: peers, missing } = await peersOf(scenario, bench)
    const sides = [...ours, ...peers]
    const warmUp = Math.max(plan.warmUp, scenario.warmUp ?? 0)
    const rounds = await performRounds(sides, server, { ...plan, warmUp })
    const results: SideResult[] = []
    for (const side of sides) {
      const turns = rounds.get(side) ?? []
      const wants = plan.hasLatency && scenario.hasLatency === true
      const latency = wants ? await latenciesOf(side, loader, turns, plan) : []
      results.push({ name: side.name, about: side.about, rounds: turns, latency })
    }
    return { sides: results, missing }
  } finally {
    await cleanups.disposeAsync()
  }
}

async function performRounds(
  sides: readonly Side[],
  { pid: database }: Server,
  { rounds, seconds, warmUp, signal }: Plan,
): Promise<ReadonlyMap<Side, readonly Turn[]>> {
  const turns = new Map<Side, Turn[]>(sides.map((side) => [side, []]))
  const progress = await showProgress(rounds + warmUp)
  for (let round = -warmUp; round < rounds; round++) {
    for (const [side, turn] of await takeRound(sides, round, { seconds, database, signal })) {
      if (turn.void !== undefined) progress.warn(`${side.name}: round ${round} is void: ${turn.void}`)
      if (round >= 0) turns.get(side)?.push(turn)
    }
    progress.advance(1)
  }
  progress.end()
  return turns
}

/** At constant rates, from the intended time of sending. The limits by programs have none. */
async function latenciesOf(
  { load }: Side,
  loader: Loader,
  turns: readonly Turn[],
  { seconds }: Plan,
): Promise<readonly Latency[]> {
  if (load === undefined) return []
  const most = median(turns.map(resultOf).filter((value) => Number.isFinite(value)))
  const latencies: Latency[] = []
  for (const share of SHARES) {
    const rate = most * share
    if (!(rate > 0)) return []
    // More connections than callers of the maximum, so that a request that is due seldom waits for one.
    const given = { ...(await load()), connections: LATENCY_CONNECTIONS }
    const { latency, lag, failed } = await loader.perform({ load: given, seconds, rate })
    if (latency && lag) latencies.push({ share, rate, ...latency, lag: lag.p99, failed })
  }
  return latencies
}

const LATENCY_CONNECTIONS = 64
