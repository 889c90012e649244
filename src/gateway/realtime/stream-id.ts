import { hash } from 'node:crypto'
import type { LiveTable } from './live-table.ts'

/** Ids of events. They name a position of the feed, and the rows that a stream shows, since only the same rows can be resumed. */
type StreamIds = {
  at(position: string): string
  /** The position of an id of an equal stream; undefined for any other text. */
  positionIn(id: string): string | undefined
}

/** `proof`: begins the ids of a stream that a ticket has opened. */
export function streamIds(tables: readonly LiveTable[], proof: string | undefined): StreamIds {
  const shown = hash('sha256', JSON.stringify(tables.map(({ cohort }) => cohort)), 'base64url').slice(0, 16)
  const head = proof === undefined ? `${shown}.` : `${proof}.${shown}.`
  return {
    at: (position) => head + position,
    positionIn: (id) => (id.startsWith(head) ? id.slice(head.length) : undefined),
  }
}
