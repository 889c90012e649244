import { type RawBuilder, sql } from 'kysely'
import { tooFarAhead } from '#kernel/clock.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { ownBucket, type Source } from './known-devices.ts'
import { hasProvenEmail, type User } from './users.ts'

/** Milliseconds, from the first wrong code. */
const WINDOW = 86_400_000
const STRANGERS = 'strangers'
/** Counts all devices and sessions of the user together: one that is stolen could make any number of sessions. */
const KNOWN = 'known'
/** The limit of those together, in limits of one. */
const TOTAL = 5
/** For an address without an account, which is looked up alike. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

/** The counters of wrong codes that a try belongs to. */
export type CodeCounters = { readonly address: string; readonly names: readonly string[] }
/** The user who has the address. */
export type CodeOwner = Pick<User, 'id' | 'emailProvenAt'>

/**
 * Strangers count together, so that they lock neither a device that the user has signed in on nor a session. Until the address is proven, the
 * user may be one of them, who has signed up with it. The look-up is the same.
 */
export async function codeCountersOf(
  kernel: Kernel,
  address: string,
  { user, source }: { readonly user: CodeOwner | undefined; readonly source: Source },
): Promise<CodeCounters> {
  const owner = user !== undefined && hasProvenEmail(user) ? user : undefined
  const known = owner === undefined ? { knownDevice: source.knownDevice } : source
  const bucket = await ownBucket(kernel, owner?.id ?? NOBODY, known)
  return { address, names: bucket === undefined ? [STRANGERS] : [bucket, KNOWN] }
}

/** SQL that counts a try before it is judged, so that any number of concurrent tries count like one after the other. */
export const countCode = (
  { now }: Pick<Kernel, 'now'>,
  { address, names }: CodeCounters,
): RawBuilder<object> => {
  const since = new Date(now().getTime() - WINDOW)
  const isOver = sql`(known.began_at <= ${since} or known.began_at > ${tooFarAhead(now)})`
  return sql<object>`(
    insert into service.wrong_mail_code as known (address, counter, failures, began_at)
      select ${address}, name, 1, ${now()}::timestamptz from unnest(${names}::text[]) as name
    on conflict (address, counter) do update set
      failures = case when ${isOver} then 1 else known.failures + 1 end,
      began_at = case when ${isOver} then excluded.began_at else known.began_at end
    returning counter, failures, began_at)`
}

/** SQL for the begin of the counts that are beyond their limit, from the rows of `countCode`. Null when none is. */
export function lockedSince({ config }: Pick<Kernel, 'config'>): RawBuilder<Date | null> {
  const max = config.auth.email_otp.max_wrong_codes
  return sql<Date | null>`(
    select max(began_at) from counted
    where failures > case counter when ${KNOWN} then ${TOTAL * max}::integer else ${max}::integer end)`
}

export const endOfLock = (since: Date): Date => new Date(since.getTime() + WINDOW)

/** Takes back a try that was right, or at no open code. */
export const uncountCode = async (db: Db, { address, names }: CodeCounters): Promise<void> =>
  void (await sql`
    update service.wrong_mail_code set failures = failures - 1
    where address = ${address} and counter = any (${names}::text[]) and failures > 0`.execute(db))

/** Deletes at most `batch` counts that are over; returns their number. One that begins anew meanwhile has a lock, and stays. */
export async function deleteOldCodeCounts(db: Db, now: Date, batch: number): Promise<number> {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select address, counter from service.wrong_mail_code
      where began_at <= ${new Date(now.getTime() - WINDOW)} limit ${batch}
      for update skip locked)
    delete from service.wrong_mail_code c using old where c.address = old.address and c.counter = old.counter`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0n)
}
