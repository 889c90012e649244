import type { GatehouseError } from '../failure.ts'
import type { Connection } from '../request.ts'

/** loading: there are no rows yet. stale: the rows may be others by now, since the connection is lost or late. */
export type LiveStatus = 'loading' | 'live' | 'stale'

export type LiveState<Row> = {
  readonly rows: readonly Row[]
  readonly status: LiveStatus
  readonly error: GatehouseError | undefined
}

/** Is called when the rows, their status or the error have changed, and never with a part of a snapshot. */
export type LiveListener<Row> = (state: LiveState<Row>) => void

/** Stands in for the stream. */
export function openLive<Row>(
  _connection: Connection,
  _request: object,
  _on: LiveListener<Row>,
  _bounds: object,
): () => void {
  throw new Error('Live rows are not here yet')
}
