import type { Position } from '#databases/drivers/changes.ts'
import { MAX_POSITION } from '#databases/drivers/postgres/changes/limits.ts'

/** The meaning of a position. It does not see the transactions that were running, and all from `next` on. */
export type Boundary = {
  /** Digests of what the positions of one history have in common, and of the structure of the tables at the boundary. */
  readonly epoch: string
  readonly structure: string
  readonly next: string
  readonly running: readonly string[]
}

/** Undefined for a text that this feed has not written. */
export function parsePosition(text: Position): Boundary | undefined {
  if (text.length > MAX_POSITION) return undefined
  const [, epoch, structure, next, running] = POSITION.exec(text) ?? []
  if (epoch === undefined || structure === undefined || next === undefined || running === undefined)
    return undefined
  const boundary = { epoch, structure, next, running: running === '' ? [] : running.split(',') }
  return [next, ...boundary.running].every((xid) => BigInt(xid) <= LAST_XID) ? boundary : undefined
}

const POSITION = /^([0-9a-f]{32})\.([0-9a-f]{32})\.(\d{1,20}):((?:\d{1,20}(?:,\d{1,20})*)?)$/
const LAST_XID = 0xffff_ffff_ffff_ffffn

/**
 * Of a `pg_snapshot`, `xmin:xmax:xip,xip`. A text that is too long is cut to an earlier boundary: what was committed between the two is told
 * again.
 */
export function formatPosition(epoch: string, structure: string, snapshot: string): Position {
  const [, xmax = '', list = ''] = snapshot.split(':')
  const whole = `${epoch}.${structure}.${xmax}:${list}`
  if (whole.length <= MAX_POSITION) return whole
  const room = MAX_POSITION - epoch.length - structure.length - 24
  const kept = list.slice(0, list.lastIndexOf(',', room))
  const [first = xmax] = list.slice(kept.length + 1).split(',')
  return `${epoch}.${structure}.${first}:${kept}`
}
