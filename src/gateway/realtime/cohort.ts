import type { Key } from '#databases/drivers/changes.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { KeyedSemaphore } from '#kernel/keyed-semaphore.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { eventText, type ResetReason } from './event-text.ts'
import { keyFrom } from './keyed-row.ts'
import { tableKey } from './live-catalogue.ts'
import { keysNow, type LiveTable, rowsByKey } from './live-table.ts'

/** Streams that see the same rows of a table, read once for all of them. */
export type Cohort = {
  readonly live: LiveTable
  readonly members: Set<Member>
  /** Keys of the rows that the members have been shown (`show`, `hide`). */
  readonly shown: Set<string>
  shownBytes: number
  /** Called with the bytes by which they have changed. */
  resized: (by: number) => void
  /** Keys whose rows may have changed since they were read. */
  readonly pending: Map<string, Pending>
  /** Keys whose rows are being read, or all of them. */
  reading: readonly Pending[] | 'all'
  /** Tables that its policies read have changed, so that it may see other rows. */
  isStale: boolean
  /** Keys of the next reading, by the size of its rows so far. */
  chunk: number
  /** held: its snapshot is being read, or its reader is away. */
  state: 'held' | 'idle' | 'reading'
  /** The number of the reader's batch after which it may join an equal one. */
  ripe: number
}

type Pending = {
  readonly key: Key
  /** A stream that resumes may have been shown it. */
  readonly mayBeShown: boolean
}

/** A stream, for its cohorts. */
export type Member = {
  /** The caller as it is now. Throws when it may have no more. */
  judge(): Promise<GatewayCaller>
  /** Its caller is judged again before they are sent. */
  deliver(delivery: Delivery, from: Cohort): void
  /** Resolves when its connection takes more. */
  drained(): Promise<void>
  /** Begins again with a snapshot. */
  restart(reason: ResetReason): void
  /** Its changes are read with those of an equal cohort from now on. */
  moved(from: Cohort, to: Cohort): void
  /** A key of so many bytes was noted in its cohort, which is held. */
  noted(bytes: number): void
  /** Changes are read late. */
  behind(seconds: number): void
  /** Ends it, for a caller who may have no more, or for want of memory. */
  dismiss(error: unknown): void
}

type RowEvent = { readonly key: Key; readonly op: 'insert' | 'update' | 'leave'; readonly text: string }

/** Events of one reading, with their bytes, which all members share. */
export type Delivery = { readonly events: readonly Omit<RowEvent, 'text'>[]; readonly bytes: Buffer }

export const cohortOf = (live: LiveTable, member: Member): Cohort => ({
  live,
  members: new Set([member]),
  shown: new Set(),
  shownBytes: 0,
  resized() {},
  pending: new Map(),
  reading: [],
  isStale: false,
  chunk: FIRST_CHUNK,
  state: 'held',
  ripe: Number.POSITIVE_INFINITY,
})

/** A cohort of its own for a member, which goes on from where this one is. */
export function copyOf(cohort: Cohort, member: Member): Cohort {
  const { live, shown, shownBytes, pending, reading, isStale } = cohort
  const own: Cohort = {
    ...cohortOf(live, member),
    shown: new Set(shown),
    shownBytes,
    pending: new Map(pending),
    isStale: isStale || reading === 'all',
  }
  if (reading !== 'all') for (const { key, mayBeShown } of reading) note(own, key, mayBeShown)
  return own
}

/** A cohort of its own for a member that cannot take what the others do. It has missed these events. */
export function apart(cohort: Cohort, member: Member, { events }: Delivery): Cohort {
  cohort.members.delete(member)
  const own = copyOf(cohort, member)
  for (const { key, op } of events) {
    if (op === 'insert') hide(own, key.json)
    note(own, key, op !== 'insert')
  }
  return own
}

export function show(cohort: Cohort, key: string): void {
  if (cohort.shown.has(key)) return
  cohort.shown.add(key)
  resize(cohort, bytesOf(key))
}

function hide(cohort: Cohort, key: string): void {
  if (cohort.shown.delete(key)) resize(cohort, -bytesOf(key))
}

export function hideAll(cohort: Cohort): void {
  cohort.shown.clear()
  resize(cohort, -cohort.shownBytes)
}

function resize(cohort: Cohort, by: number): void {
  cohort.shownBytes += by
  cohort.resized(by)
}

/** Nothing is left to read, as far as the reader has come. */
export const isQuiet = (cohort: Cohort): boolean => !hasWork(cohort) && cohort.state !== 'reading'

const hasWork = ({ pending, isStale }: Cohort): boolean => isStale || pending.size > 0

/** The row of the key has to be read. Several changes of one key, before it is read, become one. Returns the bytes that it takes. */
export function note({ pending }: Cohort, key: Key, mayBeShown = false): number {
  const before = pending.get(key.json)
  pending.set(key.json, { key, mayBeShown: mayBeShown || before?.mayBeShown === true })
  return before === undefined ? bytesOf(key.json) : 0
}

/** Of memory, that a key takes in a cohort. A text has two bytes for each character at most. */
export const bytesOf = (key: string): number => 2 * key.length + ENTRY

/** Of those that were shown and those that have changed since. */
export const bytesOfKeys = (cohorts: Iterable<Cohort>): number =>
  Iterator.from(cohorts).reduce(
    (sum, { shownBytes, pending }) =>
      pending.keys().reduce((bytes, key) => bytes + bytesOf(key), sum + shownBytes),
    0,
  )

/** There are more rows than a stream may have, or their keys take too much memory. */
export const isTooLarge = ({ shown, shownBytes }: Cohort, { config }: Pick<Kernel, 'config'>): boolean =>
  shown.size > config.gateway.max_rows || shownBytes > MOST_SHOWN

/** Of a set's or map's entry and what it refers to, and of the entry by which changes find it (table-cohorts.ts): 86 to 118 with a key of 8 to 40 characters. */
const ENTRY = 100
/** Bytes of the keys that one cohort has shown. */
const MOST_SHOWN = 33_554_432

export type Readings = {
  readonly kernel: Kernel
  /** Bounds how many are made at the same time, and of each table, which may be locked. */
  readonly slots: KeyedSemaphore
  /** Resolves when caches are trusted again, so that callers can be judged. */
  readonly trusted: () => Promise<void>
  readonly failed: (error: unknown) => void
  /** Its members have been shown other rows. */
  readonly told: (cohort: Cohort, events: Delivery['events']) => void
}

/** Keys, and their rows as JSON, where the members see one. */
type Reading = readonly (readonly [pending: Pending, row: string | undefined])[]

/** Keys of one statement. */
const FIRST_CHUNK = 50
const MOST_KEYS = 500
/** Characters of rows that one statement should return at most. */
const MOST_CHARACTERS = 524_288
/** After which a statement is broken off, which costs its connection: its rows are larger than those before. */
const TOO_MANY_CHARACTERS = 8 * MOST_CHARACTERS

/** Reads what is pending, and delivers it. */
export async function readPending(readings: Readings, cohort: Cohort): Promise<void> {
  if (cohort.state !== 'idle') return
  try {
    while (hasWork(cohort) && cohort.members.size > 0) {
      cohort.state = 'reading'
      const found = await (cohort.isStale ? compare(readings, cohort) : readChunk(readings, cohort))
      // From here to the deliveries nothing else runs: who copies the cohort finds a key in its reading, or as told.
      cohort.state = 'idle'
      cohort.reading = []
      const events = found === 'too_many' ? [] : found.flatMap((one) => eventOf(cohort, one))
      if (found === 'too_many' || isTooLarge(cohort, readings.kernel)) return restartAll(cohort, 'too_many')
      deliver(readings, cohort, events)
    }
  } catch (error) {
    // A condition that fails on a row, or a database that does not answer: the next snapshot will tell.
    readings.failed(error)
    restartAll(cohort, 'table_changed')
  } finally {
    if (cohort.state === 'reading') cohort.state = 'idle'
    cohort.reading = []
  }
}

function deliver({ told }: Readings, cohort: Cohort, rows: readonly RowEvent[]): void {
  if (rows.length === 0) return
  // Without the texts of rows, since streams remember them.
  const events = rows.map(({ key, op }) => ({ key, op }))
  told(cohort, events)
  const delivery = { events, bytes: Buffer.from(rows.map(({ text }) => text).join('\n')) }
  for (const member of cohort.members) member.deliver(delivery, cohort)
}

export function restartAll({ members }: Cohort, reason: ResetReason): void {
  for (const member of members) member.restart(reason)
}

const readChunk = (readings: Readings, cohort: Cohort): Promise<Reading> =>
  asMember(readings, cohort, async (caller) => {
    const taken = cohort.pending.values().take(cohort.chunk).toArray()
    for (const { key } of taken) cohort.pending.delete(key.json)
    cohort.reading = taken
    const keys = taken.map(({ key }) => key)
    const { rows, isWhole } = await rowsByKey(caller, cohort.live, keys, TOO_MANY_CHARACTERS)
    const size = rows.values().reduce((sum, row) => sum + row.length, 0) / Math.max(rows.size, 1)
    cohort.chunk = Math.max(1, Math.min(MOST_KEYS, Math.floor(MOST_CHARACTERS / Math.max(size, 1))))
    const isRead = ({ key }: Pending): boolean => isWhole || rows.has(key.json)
    for (const one of taken) if (!isRead(one)) note(cohort, one.key, one.mayBeShown)
    return taken.filter(isRead).map((pending) => [pending, rows.get(pending.key.json)] as const)
  })

/** Notes the keys of rows that the cohort sees now and was not shown, and of those that it was shown and does not see now. */
const compare = (readings: Readings, cohort: Cohort): Promise<Reading | 'too_many'> =>
  asMember(readings, cohort, async (caller) => {
    // Before the reading: what changes meanwhile makes it stale again.
    cohort.isStale = false
    cohort.reading = 'all'
    const now = await keysNow(readings.kernel, caller, cohort.live)
    cohort.reading = []
    if (now === undefined) return 'too_many'
    for (const json of cohort.shown.symmetricDifference(now))
      note(cohort, keyFrom(json, cohort.live.fetch.plan.table.columns))
    return []
  })

async function asMember<T>(
  { slots, trusted }: Readings,
  { live, members }: Cohort,
  work: (caller: GatewayCaller) => Promise<T | Reading>,
): Promise<T | Reading> {
  await trusted()
  // Alone, a slow reader holds nobody: meanwhile, several changes of one key become one.
  const [only, ...others] = members
  if (others.length === 0) await only?.drained()
  const release = await slots.acquire(tableKey(live.table))
  try {
    const caller = await anyCaller(members)
    return caller === undefined ? [] : await work(caller)
  } finally {
    release()
  }
}

/** A member that may still read. */
async function anyCaller(members: ReadonlySet<Member>): Promise<GatewayCaller | undefined> {
  for (const member of members) {
    try {
      return await member.judge()
    } catch (error) {
      member.dismiss(error)
    }
  }
  return undefined
}

/** A page sees an insert where it has not been shown the row, whatever statement has written it. */
function eventOf(cohort: Cohort, [{ key, mayBeShown }, row]: Reading[number]): readonly RowEvent[] {
  const table = JSON.stringify(cohort.live.name)
  const wasShown = cohort.shown.has(key.json) || mayBeShown
  if (row !== undefined) {
    const op = wasShown ? 'update' : 'insert'
    show(cohort, key.json)
    const data = `{"table":${table},"op":"${op}","key":${key.json},"row":${row}}`
    return [{ key, op, text: eventText('change', data) }]
  }
  hide(cohort, key.json)
  if (!wasShown) return []
  return [{ key, op: 'leave', text: eventText('leave', `{"table":${table},"key":${key.json}}`) }]
}
