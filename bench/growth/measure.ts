import { showProgress } from '#cli/progress.ts'
import { withServer } from '../fixture.ts'
import { startLoader } from '../load/loader.ts'
import { cachedSession, rowByPost } from '../loads.ts'
import { aboutThisRun } from '../results-file.ts'
import type { Bench } from '../scenario.ts'
import { type Server, startServerWithoutDisk } from '../server.ts'
import { type Settings, startService } from '../service.ts'
import { ourSide } from '../sides.ts'
import { median } from '../statistics.ts'
import { type Side, type Turn, takeRound } from '../turns.ts'
import { grow, ROWS_TABLE } from './fill.ts'
import type { Subject } from './kinds.ts'
import { printCurves } from './print.ts'
import { type Curve, GROWTH_FILE, LOOK_FILE, type Point, writeGrowth } from './results.ts'
import { openSubjects, TABLES } from './subjects.ts'

/** Rows of a run. A smaller one is a look, and no source of docs/performance.md. */
export const GROWTH = { whole: 1_000_000, huge: 10_000_000 } as const
const SIZES = [1_000, 10_000, 100_000, GROWTH.whole, GROWTH.huge]
const WORKERS = [1, 2, 4]

const ROUNDS = 7
/** Of each side in a round. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 0.4)
/** Uncounted rounds at the first size, in which V8 compiles, and at the others. */
const WARM_UP = { first: 5, further: 1 }

/** Measures what a request costs as the tables grow to so many rows, and by several workers. */
export async function measureGrowth(rows: number): Promise<void> {
  await withServer(async (server, signal) => {
    const about = await aboutThisRun(server.describes)
    console.log(`${server.describes} · to ${rows.toLocaleString('en')} rows`)
    const curves = [...(await byRows(server, rows, signal)), ...(await byWorkers(server, signal))]
    printCurves(curves)
    const file = rows >= GROWTH.whole ? GROWTH_FILE : LOOK_FILE
    await writeGrowth(file, { ...about, curves })
    console.log(`\n${file}`)
  }, startServerWithoutDisk)
}

const DELIVERING = {
  SERVICE_OUTBOUND__ALLOW_HTTP: 'true',
  SERVICE_OUTBOUND__ALLOW_NETWORKS: '127.0.0.1',
}

function byRows(server: Server, rows: number, signal: AbortSignal): Promise<readonly Curve[]> {
  return withBench(server, DELIVERING, async (bench) => {
    await bench.service.sql(`${ROWS_TABLE}; ${TABLES}`)
    const growing = (await openSubjects(bench)).map((subject): Growing => ({ subject, points: [] }))
    let before = 0
    for (const size of [...SIZES.filter((one) => one < rows), rows]) {
      await grow(bench, before, size)
      const warmUp = before === 0 ? WARM_UP.first : WARM_UP.further
      const larger = growing.filter(({ subject: { most = size } }) => most > before)
      await addPoints(larger, size, { server, signal, warmUp })
      before = size
    }
    return growing.map(curveOf)
  })
}

/** The same requests to a service of so many processes. */
async function byWorkers(server: Server, signal: AbortSignal): Promise<readonly Curve[]> {
  const curves = new Map<string, Point[]>()
  for (const workers of WORKERS)
    await withBench(server, { SERVICE_SERVER__WORKERS: `${workers}` }, async (bench) => {
      const loads = {
        'get-session, from the cache': await cachedSession(bench.service),
        'row by key, of 100,000': rowByPost(bench.service),
      }
      const sides = Object.entries(loads).map(([name, load]) => ourSide(bench, { name, ...load }))
      // Each of the processes compiles.
      const turns = await turnsOf(sides, { server, signal, warmUp: WARM_UP.first * 2 * workers })
      for (const side of sides)
        curves.set(side.name, [...(curves.get(side.name) ?? []), pointOf(workers, turns.get(side) ?? [])])
    })
  return [...curves].map(([title, points]) => ({ title, of: 'workers', from: 1, compared: 'all', points }))
}

type Growing = { readonly subject: Subject; readonly points: Point[] }

const curveOf = ({ subject, points }: Growing): Curve => {
  const { title, of, from = points[0]?.size ?? 0, compared = 'all' } = subject
  return { title, of, from, compared, points }
}

type Run = { readonly server: Server; readonly signal: AbortSignal; readonly warmUp: number }

async function addPoints(growing: readonly Growing[], rows: number, run: Run): Promise<void> {
  const sized = growing.map(({ subject, points }) => {
    const size = Math.min(rows, subject.most ?? rows)
    return { size, points, side: subject.side(size) }
  })
  const turns = await turnsOf(
    sized.map(({ side }) => side),
    run,
  )
  for (const { size, points, side } of sized) points.push(pointOf(size, turns.get(side) ?? []))
}

/** The sides work in turns, so that what disturbs the machine meets all of them. */
async function turnsOf(
  sides: readonly Side[],
  { server, signal, warmUp }: Run,
): Promise<ReadonlyMap<Side, readonly Turn[]>> {
  const turns = new Map<Side, Turn[]>(sides.map((side) => [side, []]))
  const progress = await showProgress(warmUp + ROUNDS)
  for (let round = -warmUp; round < ROUNDS; round++) {
    const options = { seconds: SECONDS, database: server.pid, signal }
    for (const [side, turn] of await takeRound(sides, round, options)) {
      if (turn.void !== undefined) progress.warn(`${side.name}: round ${round} is void: ${turn.void}`)
      else if (round >= 0) turns.get(side)?.push(turn)
    }
    progress.advance(1)
  }
  progress.end()
  return turns
}

const pointOf = (size: number, turns: readonly Turn[]): Point => {
  const sum = (of: (turn: Turn) => number) => turns.reduce((total, turn) => total + of(turn), 0)
  return {
    size,
    service: median(turns.map(({ service, done }) => service / done)),
    database: median(turns.map(({ database, done }) => database / done)),
    done: sum(({ done }) => done),
    failed: sum(({ failed }) => failed),
  }
}

/** A service of its own, with what is needed to ask it. */
async function withBench<T>(
  server: Server,
  settings: Settings,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  const cleanups = new AsyncDisposableStack()
  try {
    const service = await startService(server, () => settings)
    cleanups.defer(service.stop)
    const loader = startLoader()
    cleanups.defer(loader.end)
    return await work({ server, service, loader, after: (clean) => cleanups.defer(clean) })
  } finally {
    await cleanups.disposeAsync()
  }
}
