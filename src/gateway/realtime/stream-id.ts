import { hash } from 'node:crypto'
import type { GatewayCaller } from '../caller/caller.ts'
import type { LiveTable } from './live-table.ts'

/** Ids of events. They name a position of the feed, and the rows that a stream shows, since only the same rows can be resumed. */
type StreamIds = {
  at(position: string): string
  /** Of a reset, so that a stream which breaks in the snapshot after it begins again, and not after an event before it. */
  readonly nowhere: string
  /** The position of an id of an equal stream; undefined for any other text. */
  positionIn(id: string): string | undefined
}

/**
 * `proof`: begins the ids of a stream that a ticket has opened. Where policies or a public route may hide rows, ids name no position: it is not
 * known which rows were shown, keys of hidden ones may not be told when a stream resumes, and positions tell how much others write.
 */
export function streamIds(
  tables: readonly LiveTable[],
  { persona, scope }: Pick<GatewayCaller, 'persona' | 'scope'>,
  proof: string | undefined,
): StreamIds {
  const isPart = persona !== undefined || scope !== undefined
  const hides = isPart || tables.some(({ fetch }) => fetch.plan.table.isPlain !== true)
  const shown = hash('sha256', JSON.stringify(tables.map(({ cohort }) => cohort)), 'base64url').slice(0, 16)
  const head = proof === undefined ? `${shown}.` : `${proof}.${shown}.`
  return {
    at: (position) => (hides ? head : head + position),
    nowhere: head,
    positionIn: (id) => (!hides && id.startsWith(head) && id !== head ? id.slice(head.length) : undefined),
  }
}
