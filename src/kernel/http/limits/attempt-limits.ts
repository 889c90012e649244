import type pg from 'pg'
import { CLOCK_TOLERANCE, type Clock } from '../../clock.ts'
import { tooMany } from '../failures.ts'
import { ASYNCHRONOUSLY } from './limiter-table.ts'

/** Whether the attempt was right; undefined when it counts neither as wrong nor as right. */
export type Verdict = boolean | undefined

/** Where an attempt counts. */
export type AttemptBucket = {
  readonly key: string
  /** Names what several buckets guess at: together they have `TOTAL` times the attempts of one. */
  readonly total?: string | undefined
}

export type AttemptLimit = {
  /** Runs the check of an attempt, or throws 429 when the next attempt has to wait. */
  run<V extends Verdict>(bucket: AttemptBucket, isRight: () => Promise<V>): Promise<V>
  clear(key: string): Promise<void>
}

const TOTAL = 5

type Pool = Pick<pg.Pool, 'query'>
type Rule = { readonly requests: number; readonly window: number }
/** Keys of the table. */
type Rows = { readonly own: string; readonly turn: string; readonly total: string | undefined }

/**
 * At most `requests` wrong attempts per key within the window. From half of them on, a wait follows each: one second,
 * two, four … A right attempt clears the key, and takes back what it has added to the total.
 *
 * An attempt is counted before it is checked, so that concurrent attempts, also in several processes, are limited like
 * consecutive ones. The wait is a row in PostgreSQL, so that only one attempt passes when it is over.
 */
export function createAttemptLimit(name: string, rule: Rule, pool: Pool, now: Clock): AttemptLimit {
  const rowsOf = ({ key, total }: AttemptBucket): Rows => ({
    own: `${name}:${key}`,
    turn: `${name}_turn:${key}`,
    total: total === undefined ? undefined : `${name}_total:${total}`,
  })
  return {
    async run(bucket, isRight) {
      const rows = rowsOf(bucket)
      const admitted = await admit(pool, now, rule, rows)
      const verdict = await isRight().catch(async (error: unknown) => {
        await takeBack(pool, rows, admitted)
        throw error
      })
      if (verdict === undefined) await takeBack(pool, rows, admitted)
      else if (verdict) await clear(pool, rows, admitted)
      return verdict
    },
    clear: (key) => clear(pool, rowsOf({ key }), { own: '0', total: '0', hasTurn: true }),
  }
}

/** The ends of the windows in which an attempt was counted, as the table has them. */
type AttemptWindows = { readonly own: string; readonly total: string; readonly hasTurn: boolean }

type AttemptRow = { readonly key: string; readonly points: number; readonly expire: string }

/** Counts an attempt, or throws 429. */
async function admit(
  pool: Pool,
  now: Clock,
  { requests, window }: Rule,
  rows: Rows,
): Promise<AttemptWindows> {
  const present = now().getTime()
  const counted = await pool.query<AttemptRow>({
    name: 'attempt:count',
    text: COUNT,
    values: [rows.turn, rows.own, present, window, rows.total, requests],
  })
  const find = (wanted: string | undefined) => counted.rows.find(({ key }) => key === wanted)
  const leftIn = ({ expire }: AttemptRow) => Number(expire) - present
  const [turn, own, total] = [find(rows.turn), find(rows.own), find(rows.total)]
  if (turn !== undefined) throw tooMany(leftIn(turn))
  if (own === undefined) throw new Error('an attempt was not counted')
  if (own.points > requests) throw tooMany(leftIn(own))
  if (total !== undefined && total.points > TOTAL * requests) throw tooMany(leftIn(total))
  const wait = waitAfter(own.points, requests, leftIn(own))
  if (wait > 0) await takeTurn(pool, rows, { present, wait, window })
  return { own: own.expire, total: total?.expire ?? '0', hasTurn: wait > 0 }
}

/** Milliseconds until the next attempt after the `count`th wrong one; after the last one, the rest of the window. */
function waitAfter(count: number, max: number, left: number): number {
  const free = Math.floor(max / 2)
  if (count >= max) return left
  return count < free ? 0 : Math.min(left, 1_000 * 2 ** (count - free))
}

async function takeTurn(
  pool: Pool,
  { turn }: Rows,
  { present, wait, window }: { readonly present: number; readonly wait: number; readonly window: number },
): Promise<void> {
  const values = [turn, present, window, wait]
  const { rowCount } = await pool.query({ name: 'attempt:turn', text: TAKE_TURN, values })
  // A concurrent attempt has taken the turn.
  if (rowCount === 0) throw tooMany(wait)
}

async function clear(pool: Pool, { own, turn, total }: Rows, counted: AttemptWindows): Promise<void> {
  if (total === undefined && !counted.hasTurn)
    return void (await pool.query({ name: 'attempt:clear-own', text: CLEAR_OWN, values: [own] }))
  const values = [own, counted.hasTurn ? turn : null, total, counted.total]
  await pool.query({ name: 'attempt:clear', text: CLEAR, values })
}

async function takeBack(pool: Pool, { own, turn, total }: Rows, counted: AttemptWindows): Promise<void> {
  const values = [own, counted.own, counted.hasTurn ? turn : null, total, counted.total]
  await pool.query({ name: 'attempt:take-back', text: TAKE_BACK, values })
}

/** An end that is further away was written before the database's clock was set back, so it counts as over. */
const IS_OPEN = `known.expire > $3::bigint and known.expire <= $3::bigint + $4::bigint + ${CLOCK_TOLERANCE}`

/** Adds an attempt to the row of a key. $3 present, $4 window. */
const countIn = (key: string, from: string) => `
    insert into service.rate_limit as known (key, points, expire) select ${key}, 1, $3::bigint + $4::bigint ${from}
    on conflict (key) do update set
      points = case when ${IS_OPEN} then known.points else 0 end + 1,
      expire = case when ${IS_OPEN} then known.expire else excluded.expire end
    returning key, points, expire`

/**
 * $1 turn, $2 own, $5 total, $6 requests. The row of the turn if there is one; else the rows that were counted. Attempts beyond the limit of
 * their own bucket do not count in the total, or one device could use it up for all.
 */
const COUNT = `
  with ${ASYNCHRONOUSLY},
  turn as (select key, points, expire from service.rate_limit as known where key = $1 and ${IS_OPEN}),
  own as (${countIn('$2::text', 'from async where not exists (select from turn)')}),
  total as (${countIn('$5::text', 'from own where own.points <= $6::int and $5 is not null')})
  select key, points, expire from turn union all select key, points, expire from own
  union all select key, points, expire from total`

/** $1 turn, $2 present, $3 window, $4 wait. */
const TAKE_TURN = `
  insert into service.rate_limit as known (key, points, expire) values ($1, 1, $2::bigint + $4::bigint)
  on conflict (key) do update set expire = excluded.expire
    where known.expire <= $2::bigint or known.expire > $2::bigint + $3::bigint + ${CLOCK_TOLERANCE}
  returning expire`

/** The row of the total is locked last, as COUNT does, so that concurrent attempts do not deadlock: the condition on `own` runs it first. */
const uncountTotal = (key: string, expire: string) => `
  update service.rate_limit set points = points - 1
    where key = ${key} and expire = ${expire}::bigint and points > 0 and (select count(*) from own) >= 0`

/** The usual case. A parameter that is null makes PostgreSQL plan a statement anew each time. */
const CLEAR_OWN = `with ${ASYNCHRONOUSLY} delete from service.rate_limit using async where key = $1`

/** $1 own, $2 turn, $3 total, $4 the end of its window. */
const CLEAR = `
  with own as (delete from service.rate_limit where key in ($1, $2) returning key) ${uncountTotal('$3', '$4')}`

/** $1 own, $2 the end of its window, $3 turn, $4 total, $5 the end of its window. A window that began later has not counted the attempt. */
const TAKE_BACK = `
  with own as (
    update service.rate_limit set points = points - 1 where key = $1 and expire = $2::bigint and points > 0 returning key),
  turn as (delete from service.rate_limit where key = $3)
  ${uncountTotal('$4', '$5')}`
