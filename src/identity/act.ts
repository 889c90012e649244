import { sql } from 'kysely'
import { isConflict } from '#kernel/db/conflicts.ts'
import { actingAsUser, atomically, type Kernel } from '#kernel/kernel.ts'
import { type CodeOutcome, type CodeTry, tryCode } from './link-codes.ts'
import { lockProvenUser, lockUsers, type Proof } from './proof.ts'
import type { AddressPurpose, MailedPurpose, UserPurpose } from './ticket-purposes.ts'
import { findTicket, redeemAddressTicket, redeemTicket, type Ticket } from './tickets.ts'
import { isBanned, lockUserWithEmail, type User } from './users.ts'

/** The cause of an act, and the proof of it: a session, or a way in. */
export type Authority = Proof & {
  /** The failure when the proof does not hold any more. */
  readonly refuse: () => Error
  /** Ids of other users whose sessions or memberships the work changes. */
  readonly others?: readonly string[]
  /** Throws when the user may not. It is asked about the locked rows. */
  readonly may?: (kernel: Kernel, user: User) => Promise<void>
}

/** The rows that are locked until the end of the transaction. */
type Held = {
  readonly user: User
  /** Those of the others that exist, by id. */
  readonly others: ReadonlyMap<string, User>
}

/**
 * The one door to a change (house.md 5.12). Locks the rows of all users concerned by id, states the proof again, asks whether the user may,
 * and runs the work, all in one transaction. When it resolves, no process uses what the work has ended.
 */
export function act<T>(
  kernel: Kernel,
  { refuse, others: ids = [], may, ...proof }: Authority,
  work: (kernel: Kernel, held: Held) => Promise<T>,
): Promise<T> {
  return telling(kernel, async (kernel) => {
    const { userId, session } = proof
    // Those of the proof too, since all are locked by id.
    const acting = [userId, ...(session?.impersonatedBy ? [session.impersonatedBy] : [])]
    const others = ids.length > 0 ? await lockUsers(kernel, [...acting, ...ids]) : NONE
    const user = await lockProvenUser(kernel, proof)
    if (user === undefined) throw refuse()
    await may?.(kernel, user)
    return work(actingAsUser(kernel, user.id), { user, others })
  })
}

const NONE: ReadonlyMap<string, User> = new Map()

/**
 * A change by an operator, the command line or a job to what is no user's. The door of the route or the command has judged them. A session
 * of an operator is stated again; the admin key, a command and a job have nothing to prove.
 */
export const actAsOperator = <K extends ActKernel, T>(
  kernel: K,
  work: (kernel: K) => Promise<T>,
): Promise<T> =>
  telling(kernel, async (transaction) => {
    // In the transaction of another act, that one has stated it.
    if (!kernel.db.isTransaction) await kernel.operator?.prove(transaction)
    return work(transaction)
  })

/** A command that runs without the service has no more. */
type ActKernel = Pick<Kernel, 'db' | 'notes' | 'operator'> & Partial<Pick<Kernel, 'log'>>

/** The same to a user, whose row is locked. Undefined when there is no such user. */
export function actWithoutProof<T>(
  kernel: Kernel,
  userId: string,
  work: (kernel: Kernel, user: User) => Promise<T>,
): Promise<T | undefined> {
  return telling(kernel, async (kernel) => {
    const user = await lockProvenUser(kernel, { userId })
    return user && work(kernel, user)
  })
}

/** `act` with a one-time token, which is redeemed. The work decides about an expired one. */
export function actOnTicket<P extends UserPurpose, T>(
  kernel: Kernel,
  { purposes, token }: Link<P>,
  refuse: () => Error,
  work: (kernel: Kernel, user: User, ticket: Ticket<P>) => Promise<T>,
): Promise<T> {
  return telling(kernel, async (kernel) => {
    const user = await lockTicketOwner(kernel, { purposes, token })
    if (user === undefined || isBanned(user, kernel.now())) throw refuse()
    const ticket = await redeemTicket(kernel, user, purposes, token)
    if (ticket === undefined) throw refuse()
    return work(actingAsUser(kernel, user.id), user, ticket)
  })
}

/**
 * The same with a one-time token that stays valid. The work redeems it when it has done what the token is for. Until the end of the
 * transaction the token cannot be redeemed elsewhere, since the user's row is locked.
 */
export function actOnOpenTicket<P extends UserPurpose, T>(
  kernel: Kernel,
  { purposes, token }: Link<P>,
  refuse: () => Error,
  work: (kernel: Kernel, user: User, ticket: Ticket<P>) => Promise<T>,
): Promise<T> {
  return telling(kernel, async (kernel) => {
    const user = await lockTicketOwner(kernel, { purposes, token })
    // Again, since it may have been redeemed during the wait for the lock.
    const ticket = user && (await findTicket(kernel, purposes, token))
    if (user === undefined || ticket === undefined || ticket.expired) throw refuse()
    return work(actingAsUser(kernel, user.id), user, ticket)
  })
}

async function lockTicketOwner(
  kernel: Kernel,
  { purposes, token }: Link<UserPurpose>,
): Promise<User | undefined> {
  const userId = (await findTicket(kernel, purposes, token))?.userId
  return userId == null ? undefined : lockProvenUser(kernel, { userId })
}

/**
 * The same with a token of an address. `user` has the address by now and is locked; undefined when there is no account, and the work may
 * add one. When a sign-up has added it in the meantime, all of this is rolled back and done again with that user. Tokens of one address
 * are redeemed one after the other.
 */
export function actOnAddressTicket<P extends AddressPurpose, T>(
  kernel: Kernel,
  { purposes, token }: Link<P>,
  refuse: () => Error,
  work: (kernel: Kernel, user: User | undefined, ticket: Ticket<P>) => Promise<T>,
): Promise<T> {
  return againIfTaken(async () => {
    const address = (await findTicket(kernel, purposes, token))?.address
    if (address === undefined) throw refuse()
    return actOnAddress(kernel, address, async (kernel, user) => {
      if (user !== undefined && isBanned(user, kernel.now())) throw refuse()
      const ticket = await redeemAddressTicket(kernel, purposes, token)
      if (ticket === undefined) throw refuse()
      return work(kernel, user, ticket)
    })
  })
}

/**
 * The same with a code that was mailed to the address. The work redeems a right one. What it throws undoes the count of the tries, unless
 * it is a Refusal.
 */
export const actOnCode = <P extends MailedPurpose, T>(
  kernel: Kernel,
  typed: CodeTry<P>,
  work: (kernel: Kernel, user: User | undefined, outcome: CodeOutcome<P>) => Promise<T>,
): Promise<T> =>
  againIfTaken(() =>
    actOnAddress(kernel, typed.address, async (kernel, user) =>
      work(kernel, user, await tryCode(kernel, typed, user)),
    ),
  )

async function againIfTaken<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!isConflict(error, 'user_email_key')) throw error
    return await act()
  }
}

/** An act for who has named an address, on the user who has it, if any. Acts on one address run one after the other. */
export const actOnAddress = <T>(
  kernel: Kernel,
  address: string,
  work: (kernel: Kernel, user: User | undefined) => Promise<T>,
): Promise<T> =>
  telling(kernel, async (kernel) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`gatehouse address ${address}`}, 0))`.execute(
      kernel.db,
    )
    const user = await lockUserWithEmail(kernel, address)
    return work(user === undefined ? kernel : actingAsUser(kernel, user.id), user)
  })

type Link<P> = { readonly purposes: readonly P[]; readonly token: string }

/** Runs the work in a transaction, which must tell of what it changes (tell.ts), or say why not; tests fail otherwise. */
async function telling<K extends ActKernel, T>(kernel: K, work: (kernel: K) => Promise<T>): Promise<T> {
  if (kernel.db.isTransaction) return work(kernel)
  const outcome = await atomically(kernel, async (kernel) => {
    const outcome = await refusable(() => work(kernel))
    const { isChanged, isTold, untold } = kernel.notes ?? {}
    const isRefused = outcome instanceof Refusal
    if (isChanged && !isTold && untold === undefined && !isRefused)
      kernel.log?.error({ event: 'act_untold' }, 'an act has changed something and told nobody of it')
    return outcome
  })
  if (!(outcome instanceof Refusal)) return outcome
  // Only verbs of the service throw one.
  await outcome.record?.(kernel as unknown as Kernel)
  throw outcome.failure
}

/** Thrown by the work of an act, the outermost one: what it has written is committed, and then the failure is thrown. */
export class Refusal extends Error {
  readonly failure: Error
  /** Runs in between, outside of the transaction. */
  readonly record: ((kernel: Kernel) => Promise<void>) | undefined
  constructor(failure: Error, record?: (kernel: Kernel) => Promise<void>) {
    super(failure.message)
    this.failure = failure
    this.record = record
  }
}

async function refusable<T>(work: () => Promise<T>): Promise<T | Refusal> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}
