import { showProgress } from '#cli/progress.ts'
import { startLoader } from '../load/loader.ts'
import { type CheckedLoad, cachedSession, firstRows, insertRow, rowByGet, rowByPost } from '../loads.ts'
import { passwordSignIns } from '../loads-of-passwords.ts'
import { residentMemory } from '../processor.ts'
import { securedClient, securedRow } from '../scenarios/row-by-session.ts'
import { type Server, startServerWithoutDisk } from '../server.ts'
import { type Service, startService } from '../service.ts'
import { httpSide, OURS } from '../sides.ts'
import { microseconds, type Side, takeRound } from '../turns.ts'

/**
 * Four kinds of request that pass most of the code between them: a session from the cache, and on the gateway the cheapest read, many values
 * into JSON, and a write with its transaction and its look for webhooks. A sign-in is not among them: the hash is nine tenths of it.
 */
export const SCENARIOS: Scenarios = {
  'get-session, cached': cachedSession,
  'row by key, POST': rowByPost,
  '100 rows': (service) => firstRows(service, 100),
  'insert of a row': insertRow,
}

type Scenarios = Readonly<
  Record<string, (service: Service, server: Server) => Promise<CheckedLoad> | CheckedLoad>
>

const BY_SESSION = 'row by key, by session'

/** Measured only when they are named. */
const NAMED: Scenarios = {
  'row by key, GET': rowByGet,
  // Its roles go with the server.
  [BY_SESSION]: (service, server) => securedRow({ service, server, after: () => {} }),
  '1,000 rows': (service) => firstRows(service, 1_000),
  'sign-in': ({ url }) => passwordSignIns(url),
}

/** A state of the code in a folder. */
export type Checkout = { readonly name: string; readonly root: string | undefined }

const ROUNDS = 13
/** Of each side in a round. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 0.35)
/** V8 compiles for some ten thousand requests. */
const WARM_UP = 5

/** Processor µs a request of the service and the database, by scenario, then by checkout, then by round. */
export type Costs = ReadonlyMap<string, ReadonlyMap<string, readonly number[]>>

export type Measured = {
  readonly costs: Costs
  /** MiB of each checkout's processes: idle after the start, and after the load. */
  readonly memory: ReadonlyMap<string, { readonly idle: number; readonly loaded: number }>
}

/** Runs a service of each checkout on one server, and measures the scenarios on all of them in turns. */
export async function measureCheckouts(
  checkouts: readonly Checkout[],
  scenarios: readonly string[],
  signal: AbortSignal,
): Promise<Measured> {
  const server = await startServerWithoutDisk()
  const loader = startLoader()
  const services = new Map<string, Service>()
  try {
    for (const { name, root } of checkouts) {
      signal.throwIfAborted()
      const settings = scenarios.includes(BY_SESSION) ? securedClient : undefined
      services.set(name, await startService(server, settings, root))
    }
    const idle = memoryOf(services)
    const costs = new Map<string, ReadonlyMap<string, readonly number[]>>()
    const progress = await showProgress(scenarios.length * (ROUNDS + WARM_UP))
    for (const scenario of scenarios) {
      const sides: Side[] = []
      for (const [name, service] of services) {
        const checked = await { ...SCENARIOS, ...NAMED }[scenario]?.(service, server)
        if (checked) sides.push(httpSide(loader, { name, pid: service.pid, about: OURS, ...checked }))
      }
      const advance = () => {
        signal.throwIfAborted()
        progress.advance(1)
      }
      costs.set(scenario, await costsOf(sides, server.pid, advance))
    }
    progress.end()
    const loaded = memoryOf(services)
    const memory = [...services.keys()].map(
      (name) => [name, { idle: idle.get(name) ?? 0, loaded: loaded.get(name) ?? 0 }] as const,
    )
    return { costs, memory: new Map(memory) }
  } finally {
    for (const service of services.values()) await service.stop()
    await loader.end()
    await server.stop()
  }
}

const memoryOf = (services: ReadonlyMap<string, Service>): ReadonlyMap<string, number> =>
  new Map([...services].map(([name, { pid }]) => [name, residentMemory(pid)]))

async function costsOf(
  sides: readonly Side[],
  database: number,
  advance: () => void,
): Promise<ReadonlyMap<string, readonly number[]>> {
  const costs = new Map<string, number[]>(sides.map(({ name }) => [name, []]))
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const [{ name }, turn] of await takeRound(sides, round, { seconds: SECONDS, database })) {
      // A brake that measured something else than the work would be worse than none.
      if (turn.void !== undefined || turn.failed > 0)
        throw new Error(`${name}: ${turn.void ?? `${turn.failed} requests failed`}`)
      if (round >= 0) costs.get(name)?.push(microseconds([turn]))
    }
    advance()
  }
  return costs
}
