import type {
  Batch,
  ChangeFeed,
  LostPosition,
  Position,
  RowValues,
  TableChange,
} from '#databases/drivers/changes.ts'
import type { TableName } from '#databases/request/request.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createKeyedSemaphore, type KeyedSemaphore } from '#kernel/keyed-semaphore.ts'
import { fail } from '../errors.ts'
import { createAlarm } from './alarm.ts'
import { type Cohort, note, type Readings, readPending, restartAll } from './cohort.ts'
import { createCohorts } from './cohorts.ts'
import type { ResetReason } from './event-text.ts'
import { createLiveCatalogue } from './live-catalogue.ts'
import type { LiveTables } from './live-table.ts'
import { type KeyChanges, type Owners, ownersIn } from './owners.ts'
import type { Poller } from './poller.ts'
import type { ShownKeys } from './shown-keys.ts'

/** Reads the changes of one client's database for the streams of this process. */
export type Reader = LiveTables & {
  /** Everything committed before it has been noted in the cohorts that were there. */
  position(): Position
  /** Another number means that tables or policies have changed. */
  version(): number
  /**
   * Resolves when there is a position that is later than everything that is known of the tables: an earlier change of them is of no stream that
   * begins then. Rejects with the failure of a database that does not answer.
   */
  begin(): Promise<void>
  /** The changes after an older position. */
  since(position: Position): Promise<Batch | LostPosition>
  /** From now on changes of its table are noted in it. */
  add(cohort: Cohort): void
  /** The same for one whose reader is away: it shows what it has shown. */
  keep(cohort: Cohort): void
  /** Its snapshot has been read. */
  release(cohort: Cohort): void
  /** It has no members any more. */
  remove(cohort: Cohort): void
  /** Bounds how many snapshots are read at the same time, and for each caller. */
  readonly snapshots: KeyedSemaphore
  /** Something was written through this process. */
  wake(): void
  lagSeconds(): number
  close(): void
}

/** Milliseconds between two looks for writes past the gateway. */
const POLL = 250
/** Between two reads, however much is written: changes of this time become one batch. */
const LEAST = 10
/** After a failure. */
const BACKOFF = 1_000
/** Readings of rows, and snapshots, of one client at the same time. */
const READINGS = 4
/** Keys that the cohorts of one table have to read. With more, which take about 50 MB, they begin again. */
const MOST_NOTES = 500_000
/** Seconds after which streams are told that they are behind. */
const LATE = 5

/** `join`: finds out who looks for changes, when the first stream begins. */
export function createReader(
  kernel: Kernel,
  feed: ChangeFeed,
  join: (ring: () => void) => Promise<Poller>,
  keys: ShownKeys,
): Reader {
  const cohorts = createCohorts(keys)
  const catalogue = createLiveCatalogue(feed)
  const alarm = createAlarm()
  let cursor: Position = ''
  let [begun, done, lag] = [0, 0, 0]
  let isOpen = true
  /** There may be something to read: it was woken, the last read has failed, or a cohort waits to be united with others. */
  let isWanted = false
  let poller: Poller | undefined
  /** Answers of the catalogue that the last read came after. */
  let passed = 0
  let nextRead: PromiseWithResolvers<void> | undefined
  let beginning: Promise<void> | undefined
  const trusted = async () => {
    while (!kernel.coherence.isTrusted() && isOpen) await alarm.pause(LEAST)
  }
  const failed = (error: unknown) =>
    kernel.log.warn({ event: 'live_rows_unread', error }, 'changes of live rows could not be read')
  const told: Readings['told'] = (cohort, events) => cohorts.of(cohort.live.table)?.told(cohort, events)
  const slots = createKeyedSemaphore(READINGS, WAITING)
  const readings: Readings = { kernel, slots, trusted, failed, told }

  async function loop(): Promise<void> {
    while (isOpen) {
      if (await alarm.wait(POLL)) isWanted = true
      if (!isWanted && poller?.isDue() === false) continue
      await trusted()
      if (!isOpen) return
      try {
        await step()
      } catch (error) {
        isWanted = true
        endRead(error)
        failed(error)
        await alarm.pause(BACKOFF)
      }
      await alarm.pause(LEAST)
    }
  }

  /** A batch that breaks is read again, since the position stays. */
  async function step(): Promise<void> {
    const [number, answers] = [++begun, catalogue.answers()]
    isWanted = false
    const batch = await feed.read(cursor)
    let noted: Iterable<Cohort> = []
    if ('lost' in batch) {
      catalogue.forget()
      try {
        cursor = await feed.position()
      } finally {
        // Also those that came meanwhile: the boundary may be later than their snapshots.
        for (const cohort of cohorts.all()) restartAll(cohort, batch.lost)
      }
    } else noted = noteAll(batch, await ownersIn(feed, batch, (table) => cohorts.of(table)?.ownerColumns()))
    ;[done, passed] = [number, answers]
    endRead()
    poller?.hasRead('lost' in batch || batch.tables.length > 0)
    for (const cohort of noted) void read(cohort)
  }

  /** Reads what is pending in it. */
  async function read(cohort: Cohort): Promise<void> {
    if (cohort.state !== 'idle') return
    cohorts.of(cohort.live.table)?.unroute(cohort)
    await readPending(readings, cohort)
    if (cohort.state === 'idle') route(cohort)
  }

  const route = (cohort: Cohort) => cohorts.of(cohort.live.table)?.route(cohort)

  function endRead(error?: unknown): void {
    if (error === undefined) nextRead?.resolve()
    else nextRead?.reject(error)
    nextRead = undefined
  }

  async function passAnswers(): Promise<void> {
    for (const answers = catalogue.answers(); passed < answers && isOpen; ) {
      nextRead ??= Promise.withResolvers()
      alarm.ring()
      await nextRead.promise
    }
  }

  /** Returns the cohorts that have something to read. */
  function noteAll(batch: Batch, owners: Owners): Iterable<Cohort> {
    cohorts.unite(done)
    // Not with each change of a table that is not live, or that only policies read: streams would begin again and again.
    if (batch.isRestructured) catalogue.forget()
    const noted = new Set<Cohort>()
    for (const change of batch.tables) apply(change, owners.get(change), noted)
    cursor = batch.position
    lag = batch.lagSeconds
    if (lag >= LATE) for (const { members } of cohorts.all()) for (const member of members) member.behind(lag)
    return noted
  }

  function apply(change: TableChange, values: RowValues | undefined, noted: Set<Cohort>): void {
    const { table } = change
    const isOther =
      'reset' in change && (change.reset === 'table_changed' || change.reset === 'policy_changed')
    if ('keys' in change) noteKeys(change, values, noted)
    else restartTable(table, RESETS[change.reset])
    for (const cohort of cohorts.watching(table)) {
      // Its policies may read other claims and tables now, and triggers may be missing there.
      if (isOther) restartAll(cohort, 'policy_changed')
      // They may judge every row differently.
      else cohort.isStale = true
      noted.add(cohort)
    }
  }

  function noteKeys({ table, keys }: KeyChanges, values: RowValues | undefined, noted: Set<Cohort>): void {
    const those = cohorts.of(table)
    if (those === undefined) return
    const own = new Set<Cohort>()
    let left = MOST_NOTES
    for (const { key } of keys)
      for (const cohort of those.concernedBy(key, values)) {
        if (!own.has(cohort)) left -= cohort.pending.size
        own.add(cohort)
        const bytes = note(cohort, key)
        if (bytes > 0 && cohort.state === 'held') for (const member of cohort.members) member.noted(bytes)
        if (bytes > 0 && --left < 0) {
          restartTable(table, 'too_many')
          return
        }
      }
    for (const cohort of own) {
      if (cohort.pending.size > kernel.config.gateway.max_rows) restartAll(cohort, 'too_many')
      noted.add(cohort)
    }
  }

  function restartTable(table: TableName, reason: ResetReason): void {
    for (const cohort of [...(cohorts.of(table)?.all ?? [])]) restartAll(cohort, reason)
  }

  return {
    keyOf: catalogue.keyOf,
    policies: catalogue.policies,
    version: catalogue.version,
    position: () => cursor,
    begin() {
      const first = async () => {
        poller ??= await join(alarm.ring)
        if (!isOpen) poller.close()
        const answers = catalogue.answers()
        cursor = await feed.position()
        passed = answers
        // No batch tells what has changed between these answers and the first position.
        catalogue.forget()
        void loop()
      }
      beginning ??= first().catch((error: unknown) => {
        beginning = undefined
        throw error
      })
      return beginning.then(passAnswers)
    },
    since: (position) => feed.read(position),
    add: cohorts.add,
    keep(cohort) {
      cohorts.add(cohort)
      route(cohort)
    },
    release(cohort) {
      cohort.state = 'idle'
      cohort.ripe = begun + 1
      isWanted = true
      void read(cohort)
    },
    remove: cohorts.remove,
    snapshots: createKeyedSemaphore(READINGS, WAITING),
    wake: alarm.ring,
    lagSeconds: () => lag,
    close() {
      isOpen = false
      alarm.ring()
      endRead()
      poller?.close()
    },
  }
}

/** As a stream is told. */
export const RESETS = {
  too_many: 'too_many',
  truncated: 'too_many',
  table_changed: 'table_changed',
  policy_changed: 'policy_changed',
  watched: 'rights_changed',
} as const

/** As many wait as there are streams, which are bounded themselves. */
const WAITING = { max: Number.POSITIVE_INFINITY, refusal: () => fail('too_many_streams') }
