import { sql } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Source } from './known-devices.ts'
import type { MailedPurpose } from './ticket-purposes.ts'
import {
  type NewTicket,
  SESSION_END,
  TICKET_COLUMNS,
  type Ticket,
  type TicketRow,
  ticketFrom,
} from './tickets.ts'
import {
  type CodeCounters,
  type CodeOwner,
  codeCountersOf,
  countCode,
  endOfLock,
  lockedSince,
  uncountCode,
} from './wrong-mail-codes.ts'

/** A code of six digits beside a mailed link, in the row of the link. Typing it does what the link does. */
export type LinkCode = NonNullable<NewTicket<MailedPurpose>['code']>

/** Wrong tries at one code: of the browser that asked, and as many of all others together. */
const MAX_TRIES = 3

/** The number of codes that were mailed to the address for this purpose, and can still be redeemed. */
export async function countOpenCodes(
  { db, now }: Kernel,
  { purpose, address }: { readonly purpose: MailedPurpose; readonly address: string },
): Promise<number> {
  const { count } = await db
    .selectFrom('verification')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('address', '=', address)
    .where('purpose', '=', purpose)
    .where('codeHash', 'is not', null)
    .where('codeExpiresAt', '>', now())
    .where((of) =>
      of.or([
        of('attempts', '<', MAX_TRIES),
        of.and([of('browser', 'is not', null), of('browserAttempts', '<', MAX_TRIES)]),
      ]),
    )
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** A code as it was typed. */
export type CodeTry<P extends MailedPurpose> = {
  /** It counts as one try, whichever of them it is for. */
  readonly purposes: readonly P[]
  /** The address that it was mailed to. */
  readonly address: string
  /** Its stored forms for each purpose. */
  readonly hashes: readonly Buffer[]
  /** As in `LinkCode`, of the browser in which it was typed. */
  readonly browser: string | undefined
  /** Of the user who has the address. */
  readonly source: Source
}

/** `spent`: there were too many tries at each code. `expired`: there were codes. */
export type CodeOutcome<P extends MailedPurpose> = RightCode<P> | LockedCodes | 'wrong' | 'spent' | 'expired'
/** There were too many wrong codes for the address, so that this one was not compared. */
type LockedCodes = { readonly lockedUntil: Date }
export type RightCode<P extends MailedPurpose> = { readonly ticket: Ticket<P>; readonly key: Buffer }

/**
 * Counts a try for the address and at every open code of the user, or of the address, and then compares: so any number of concurrent tries
 * at a code are three. A right code stays until it is redeemed. The address (act.ts) or the user's row has to be locked before.
 */
export async function tryCode<P extends MailedPurpose>(
  kernel: Kernel,
  typed: CodeTry<P>,
  user: CodeOwner | undefined,
): Promise<CodeOutcome<P>> {
  const { db, now } = kernel
  const userId = user?.id
  const counters = await codeCountersOf(kernel, typed.address, { user, source: typed.source })
  const { since, tried } = await spendTry(kernel, typed, userId, counters)
  const open = tried.filter(({ tries }) => tries <= MAX_TRIES)
  const right = open.find(({ isRight }) => isRight)
  if (right !== undefined || open.length === 0) await uncountCode(db, counters)
  if (since !== null) return { lockedUntil: endOfLock(since) }
  if (right !== undefined) return { ticket: ticketFrom(right, now()), key: right.valueHash }
  if (tried.length > 0) return open.length > 0 ? 'wrong' : 'spent'
  return (await hadCode(db, typed, userId)) ? 'expired' : 'wrong'
}

/** One statement. When the address has had too many wrong codes, it tries none. */
async function spendTry(
  { db, now, config }: Kernel,
  { purposes, address, hashes, browser }: CodeTry<MailedPurpose>,
  userId: string | undefined,
  counters: CodeCounters,
) {
  const since = lockedSince({ config })
  const found = await db
    .with('counted', () => countCode({ now }, counters))
    .with('tried', (with_) =>
      with_
        .updateTable('verification as v')
        .set(countsAfter(browser, 1))
        .where('v.address', '=', address)
        .where('v.purpose', 'in', purposes)
        .where('v.codeExpiresAt', '>', now())
        .where((of) => of.or([of('v.userId', 'is', null), of('v.userId', '=', userId ?? null)]))
        .where(since, 'is', null)
        .returning(['v.valueHash', ...TICKET_COLUMNS])
        .returning(SESSION_END)
        .returning(
          sql<number>`case when ${isAsker(browser)} then browser_attempts else attempts end`.as('tries'),
        )
        .returning(({ eb }) => eb('v.codeHash', 'in', hashes).$castTo<boolean>().as('isRight')),
    )
    .selectFrom(sql<object>`(select)`.as('one'))
    .leftJoin('tried', (on) => on.onTrue())
    .selectAll('tried')
    .select(since.as('since'))
    .execute()
  const tried = found.flatMap(({ since: _, valueHash, tries, isRight, ...row }) =>
    valueHash === null || tries === null ? [] : [{ ...(row as TicketRow), valueHash, tries, isRight }],
  )
  return { since: found[0]?.since ?? null, tried }
}

async function hadCode(
  db: Db,
  { purposes, address }: Pick<CodeTry<MailedPurpose>, 'purposes' | 'address'>,
  userId: string | undefined,
): Promise<boolean> {
  const found = await db
    .selectFrom('verification')
    .select('purpose')
    .where('address', '=', address)
    .where('purpose', 'in', purposes)
    .where('codeHash', 'is not', null)
    .where((of) => of.or([of('userId', 'is', null), of('userId', '=', userId ?? null)]))
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

/** Redeems a right code with its link. */
export const redeemCode = async (db: Db, { key }: Pick<RightCode<MailedPurpose>, 'key'>): Promise<void> =>
  void (await db.deleteFrom('verification').where('valueHash', '=', key).execute())

/** Gives back the try of a right code that is not redeemed yet. */
export const returnTry = async (
  db: Db,
  { key }: Pick<RightCode<MailedPurpose>, 'key'>,
  browser: string | undefined,
): Promise<void> =>
  void (await db
    .updateTable('verification')
    .set(countsAfter(browser, -1))
    .where('valueHash', '=', key)
    .execute())

const isAsker = (browser: string | undefined) =>
  sql<boolean>`coalesce(browser = ${browser ?? null}::text, false)`

/** The columns of the count that the browser belongs to. */
const countsAfter = (browser: string | undefined, change: 1 | -1) => ({
  attempts: sql<number>`attempts + case when ${isAsker(browser)} then 0 else ${change}::integer end`,
  browserAttempts: sql<number>`browser_attempts + case when ${isAsker(browser)} then ${change}::integer else 0 end`,
})
