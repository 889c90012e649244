import type { Kernel } from '#kernel/kernel.ts'
import { withTimeout } from '#kernel/timeout.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type Cohort, hideAll, isTooLarge, note, show } from './cohort.ts'
import type { EventOutput } from './event-output.ts'
import { eventText, finished, type ResetReason } from './event-text.ts'
import { tableKey } from './live-catalogue.ts'
import { rowsNow } from './live-table.ts'
import { RESETS, type Reader } from './reader.ts'

/** Characters of one event of a snapshot. */
const PIECE = 65_536
/** Milliseconds after which a snapshot that waits for its reader lets others begin. */
const PATIENCE = 200

type Showing = {
  readonly kernel: Kernel
  readonly reader: Reader
  readonly output: EventOutput
  /** Judges the caller, and writes. */
  readonly send: (text: string) => Promise<void>
  readonly goesOn: () => boolean
  /** They take turns with others. */
  readonly payers: readonly string[]
}

type Outcome = 'whole' | 'too_many' | 'stale' | 'over'
/** changes: they are noted, in place of the rows. */
export type Shown = Outcome | 'changes'

type Beginning = {
  /** The reader's last event, if it comes back. */
  readonly last: { readonly position: string | undefined } | undefined
  readonly keysOnly: boolean
  /** Tells it to begin again. */
  readonly reset: (reason: ResetReason) => void
}

/** Shows the rows of now, or notes what has changed since the reader's last event. */
export async function showSince(
  showing: Showing,
  judge: () => Promise<GatewayCaller>,
  cohorts: readonly Cohort[],
  { last, keysOnly, reset }: Beginning,
): Promise<Shown> {
  // The keys first: a row that its reader has, and that is not among them, has left since the last event, which the changes tell then.
  const keys = last?.position === undefined ? 'whole' : await showAll(showing, judge, cohorts, true)
  if (keys !== 'whole') return keys
  const lost = await changesSince(showing.reader, cohorts, last)
  if (!showing.goesOn()) return 'over'
  if (lost === true) return 'changes'
  if (lost !== undefined) reset(lost)
  for (const cohort of cohorts) hideAll(cohort)
  return showAll(showing, judge, cohorts, keysOnly)
}

/** Shows the rows of each cohort (`showRows`), to the caller as judged before each; ends with the first that is not whole. */
async function showAll(
  showing: Showing,
  judge: () => Promise<GatewayCaller>,
  cohorts: readonly Cohort[],
  keysOnly: boolean,
): Promise<Outcome> {
  for (const cohort of cohorts) {
    const outcome = await showRows(showing, await judge(), cohort, keysOnly)
    if (!showing.goesOn()) return 'over'
    if (outcome !== 'whole') return outcome
  }
  return 'whole'
}

/**
 * Sends the rows of a fetch of now, and keeps their keys; with `keysOnly`, it sends nothing. A row that has changed before its turn comes is left
 * to the reading of the change, since a slow reader may take long. stale: the policies may judge every row differently now.
 */
async function showRows(
  { kernel, reader, output, send, goesOn, payers }: Showing,
  caller: GatewayCaller,
  cohort: Cohort,
  keysOnly: boolean,
): Promise<Outcome> {
  const { live, pending } = cohort
  let isWhole = true
  let piece: string[] = []
  let [size, pieces] = [0, 0]
  const flush = () => {
    const text = `{"table":${JSON.stringify(live.name)},"rows":[${piece.join(',')}]}`
    ;[piece, size, pieces] = [[], 0, pieces + 1]
    return send(finished(eventText('snapshot', text)))
  }
  const release = await reader.snapshots.acquire(...payers)
  cohort.isStale = false
  try {
    const rows = rowsNow(kernel, caller, live, {
      keysOnly,
      hasMore: () => {
        isWhole = false
      },
    })
    for await (const { key, row } of rows) {
      if (!goesOn()) return 'over'
      if (cohort.isStale) return 'stale'
      if (!keysOnly && pending.has(key)) continue
      show(cohort, key)
      if (isTooLarge(cohort, kernel)) return 'too_many'
      if (keysOnly) continue
      piece.push(row)
      size += row.length
      if (size < PIECE) continue
      await flush()
      await withTimeout(output.drained(), PATIENCE, release)
      await output.drained()
    }
  } finally {
    release()
  }
  if (!goesOn()) return 'over'
  if (!isWhole) return 'too_many'
  if (!keysOnly && (piece.length > 0 || pieces === 0)) await flush()
  return 'whole'
}

/**
 * Notes in the cohorts what has changed since the reader's last event. True: the stream goes on from there. Undefined: it begins. Otherwise
 * the reason why it has to begin.
 */
async function changesSince(
  reader: Reader,
  cohorts: readonly Cohort[],
  last: { readonly position: string | undefined } | undefined,
): Promise<ResetReason | true | undefined> {
  if (last === undefined) return undefined
  if (last.position === undefined) return 'too_old'
  const batch = await reader.since(last.position)
  if ('lost' in batch) return batch.lost
  for (const change of batch.tables) {
    const watching = cohorts.some(({ live }) =>
      live.reads.tables.some((one) => tableKey(one) === tableKey(change.table)),
    )
    if (watching) return 'rights_changed'
    for (const cohort of cohorts) {
      if (tableKey(cohort.live.table) !== tableKey(change.table)) continue
      if (!('keys' in change)) return RESETS[change.reset]
      for (const { key } of change.keys) note(cohort, key, true)
    }
  }
  return true
}
