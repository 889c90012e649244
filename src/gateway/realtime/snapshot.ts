import type { Kernel } from '#kernel/kernel.ts'
import { withTimeout } from '#kernel/timeout.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type Cohort, note } from './cohort.ts'
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

/**
 * Sends the rows of a fetch of now, and keeps their keys; with `keysOnly`, it sends nothing. A row that has changed before its turn comes is left
 * to the reading of the change, since a slow reader may take long. stale: the policies may judge every row differently now.
 */
export async function showRows(
  { kernel, reader, output, send, goesOn, payers }: Showing,
  caller: GatewayCaller,
  cohort: Cohort,
  keysOnly: boolean,
): Promise<'whole' | 'too_many' | 'stale' | 'over'> {
  const { live, shown, pending } = cohort
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
      shown.add(key)
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
export async function changesSince(
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
