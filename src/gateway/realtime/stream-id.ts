import { hash } from 'node:crypto'
import type { GatewayCaller } from '../caller/caller.ts'
import type { LiveTable } from './live-table.ts'
import type { Place } from './pages.ts'

/** Ids of events. They name a position of the feed, and the rows that a stream shows, since only the same rows can be resumed. */
type StreamIds = {
  /** They name no position, but the stream and the number of its last delivery. */
  readonly isNumbered: boolean
  at(position: string, sent: number): string
  /** Of a reset, so that a stream which breaks in the snapshot after it begins again, and not after an event before it. */
  readonly nowhere: string
  /** The position of an id of an equal stream; undefined for any other text. */
  positionIn(id: string): string | undefined
  /** The place of such an id of an equal stream. */
  placeIn(id: string): Place | undefined
}

/**
 * `proof`: begins the ids of a stream that a ticket has opened. Where policies or a public route may hide rows, ids name no position: keys of
 * hidden rows may not be told when a stream resumes, and positions tell how much others write. `stream` is secret.
 */
export function streamIds(
  tables: readonly LiveTable[],
  { persona, scope }: Pick<GatewayCaller, 'persona' | 'scope'>,
  { proof, stream }: { readonly proof: string | undefined; readonly stream: string },
): StreamIds {
  const isPart = persona !== undefined || scope !== undefined
  const isNumbered = isPart || tables.some(({ fetch }) => fetch.plan.table.isPlain !== true)
  const shown = hash('sha256', JSON.stringify(tables.map(({ cohort }) => cohort)), 'base64url').slice(0, 16)
  const head = proof === undefined ? `${shown}.` : `${proof}.${shown}.`
  const restOf = (id: string): string | undefined => (id.startsWith(head) ? id.slice(head.length) : undefined)
  return {
    isNumbered,
    at: (position, sent) => head + (isNumbered ? `${stream}.${sent}` : position),
    nowhere: head,
    positionIn: (id) => (isNumbered ? undefined : restOf(id)) || undefined,
    placeIn(id) {
      const [, name, sent] = /^([\w-]{43})\.(\d{1,15})$/.exec((isNumbered && restOf(id)) || '') ?? []
      return name === undefined ? undefined : { stream: name, sent: Number(sent) }
    },
  }
}
