import type { EventData, EventName } from '../events.ts'
import type { Actor } from './actor.ts'

/** Whether a row meets a filter. Unknown when the caller's answer lacks what would decide it. */
export type Match = 'met' | 'unmet' | 'unknown'

/** The rows of an event, which the caller's own statement has returned. */
export type EventRows = {
  /** JSON text of the array; undefined when it is longer than MAX_ROWS_BYTES, null when the caller wanted none. */
  readonly json: string | undefined | null
  /** They are as they were before the operation, which has deleted them. */
  readonly areOld?: boolean
  /** By relations, they contain rows of other tables than that of the event. */
  readonly ofOtherTables?: boolean
  /** Whether a row meets the conditions, given as JSON text. */
  judge(filter: string): Promise<Match>
}

/** Rows in an event, bytes (gateway.md 12). Those of a delete are in it twice. */
export const MAX_ROWS_BYTES = 262_144

export type Payload<Name extends EventName = EventName> = {
  /** UUID, also the header webhook-id. */
  readonly id: string
  readonly name: Name
  readonly at: Date
  readonly data: EventData[Name]
  readonly actor: Actor
  readonly rows?: Pick<EventRows, 'json' | 'areOld'> | undefined
  /** The request that has caused it, where the data does not name one. */
  readonly requestId?: string | null | undefined
}

/** The JSON text of an event, which is signed and sent. The rows keep the text of the database. */
export function payloadText({ id, name, at, data, actor, rows, requestId = null }: Payload): string {
  const { client, request_id, ...known } = { client: null, request_id: requestId, ...data }
  const facts = { ...known, actor }
  const envelope = { id, type: name, timestamp: at.toISOString(), client, request_id, data: facts }
  if (rows === undefined || rows.json === null) return JSON.stringify(envelope)
  if (rows.json === undefined) return JSON.stringify({ ...envelope, data: { ...facts, rows_omitted: true } })
  // `data` is the last member, and has at least one of its own.
  const old = rows.areOld === true ? `,"old_rows":${rows.json}` : ''
  return `${JSON.stringify(envelope).slice(0, -2)},"rows":${rows.json}${old}}}`
}
