import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type pg from 'pg'
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import type { Clock } from '../../clock.ts'
import type { Config } from '../../config/config.ts'
import type { Db } from '../../db/connect.ts'
import { deleteExpired } from '../../db/delete-expired.ts'
import { tooMany } from '../failures.ts'
import { type AttemptBucket, type AttemptLimit, createAttemptLimit, type Verdict } from './attempt-limits.ts'
import { createLimiterTable, type LimiterTableFor } from './limiter-table.ts'
import { createSynchronizedLimit } from './synchronized-limit.ts'

/**
 * Rules of `rate_limits.rules` that count every request, and `mail_recipient_total`, three times `mail_recipient`. They have buckets in PostgreSQL for all processes, except
 * `default`, which each process counts by itself and synchronizes every second.
 */
export type RuleName =
  | 'sign_in'
  | 'sign_up'
  | 'anonymous'
  | 'mail'
  | 'mail_recipient'
  | 'mail_recipient_total'
  | 'two_factor'
  | 'device_code'
  | 'user_code'
  | 'impersonation'
  | 'admin_key'
  | 'webhook_test'
  | 'default'

/** Rules that count only wrong attempts, with growing waits. */
type AttemptRule = 'sign_in_account'

export type RateLimits = {
  /**
   * Throws 429 when this process knows that the bucket is empty; runs no query and takes nothing. For use before
   * work that precedes `consume` and costs a query.
   */
  expectRoom(rule: RuleName, key: string): Promise<void>
  /** Takes one from the bucket of this rule and key, or throws 429 with Retry-After. An IPv6 address counts as its /64. */
  consume(rule: RuleName, key: string): Promise<void>
  /** The same, but returns false instead of throwing. */
  allows(rule: RuleName, key: string): Promise<boolean>
  /** Runs the check of a password, or throws 429 with Retry-After. A right one clears the bucket. */
  attempt<V extends Verdict>(rule: AttemptRule, bucket: AttemptBucket, isRight: () => Promise<V>): Promise<V>
  /** Forgets the wrong attempts of a bucket. */
  clear(rule: AttemptRule, key: string): Promise<void>
  /** Takes one from the bucket of this limit and address, as `consume` does, also with `rate_limits.enabled: false`. */
  consumeOwn(limit: OwnLimit, address: string): Promise<void>
  close(): void
}

/** A limit that a record has by itself. When its numbers change, what was counted stays, unless a new window would end earlier. */
type OwnLimit = { readonly name: string; readonly requests: number; readonly seconds: number }

/** The limit of all mails to one recipient together. */
const totalOf = ({ requests, window }: Rule): Rule => ({ requests: 3 * requests, window })

type Rule = { readonly requests: number; readonly window: number }

export function createRateLimits(config: Config, pool: pg.Pool, now: Clock): RateLimits {
  const table = createLimiterTable(pool, now)
  const consumeOwn = createOwnLimits(table)
  if (!config.rate_limits.enabled) return { ...UNLIMITED, consumeOwn }
  const { sign_in_account, default: rest, ...rules } = config.rate_limits.rules
  const synchronized = createSynchronizedLimit('default', rest, pool)
  const limiters = new Map<string, Limiter>([
    ['default', synchronized],
    ['mail_recipient_total', limiterOf('mail_recipient_total', totalOf(rules.mail_recipient), table)],
    ...Object.entries(rules).map(([name, rule]) => [name, limiterOf(name, rule, table)] as const),
  ])
  const attemptLimits: Record<AttemptRule, AttemptLimit> = {
    sign_in_account: createAttemptLimit('sign_in_account', sign_in_account, pool, now),
  }
  /** Milliseconds until the next request, when this one is refused. */
  const take = async (rule: RuleName, key: string): Promise<number | undefined> => {
    try {
      await limiters.get(rule)?.consume(bucketOf(key))
      return undefined
    } catch (refused) {
      if (refused instanceof RateLimiterRes) return refused.msBeforeNext
      throw refused
    }
  }
  return {
    async expectRoom(rule, key) {
      const wait = (await limiters.get(rule)?.emptyFor(bucketOf(key))) ?? 0
      if (wait > 0) throw tooMany(wait)
    },
    async consume(rule, key) {
      const wait = await take(rule, key)
      if (wait !== undefined) throw tooMany(wait)
    },
    allows: async (rule, key) => (await take(rule, key)) === undefined,
    attempt: (rule, { key, total }, isRight) =>
      attemptLimits[rule].run({ key: bucketOf(key), total: total && bucketOf(total) }, isRight),
    clear: (rule, key) => attemptLimits[rule].clear(bucketOf(key)),
    consumeOwn,
    close: synchronized.close,
  }
}

/** Limiters by their numbers: they count in the same rows, and a limiter beyond this number is made again when it is needed. */
const OWN_LIMITERS = 1_000

function createOwnLimits(table: LimiterTableFor): RateLimits['consumeOwn'] {
  const limiters = new Map<string, Limiter>()
  return async ({ name, requests, seconds }, address) => {
    const numbers = `${requests}/${seconds}`
    const limiter = limiters.get(numbers) ?? limiterOf('own', { requests, window: seconds * 1_000 }, table)
    if (limiters.size >= OWN_LIMITERS) limiters.clear()
    limiters.set(numbers, limiter)
    try {
      await limiter.consume(`${name}:${bucketOf(address)}`)
    } catch (refused) {
      if (refused instanceof RateLimiterRes) throw tooMany(refused.msBeforeNext)
      throw refused
    }
  }
}

type Limiter = {
  consume(key: string): Promise<unknown>
  /** Milliseconds for which this process knows that the bucket is empty; else 0. */
  emptyFor(key: string): number | Promise<number>
}

const UNLIMITED: Omit<RateLimits, 'consumeOwn'> = {
  expectRoom: async () => {},
  consume: async () => {},
  allows: async () => true,
  attempt: (_rule, _bucket, isRight) => isRight(),
  clear: async () => {},
  close: () => {},
}

function limiterOf(name: string, { requests, window }: Rule, table: LimiterTableFor): Limiter {
  const options = { keyPrefix: name, points: requests, duration: window / 1_000 }
  const limiter = new RateLimiterPostgres({
    ...options,
    ...table(window),
    // Beyond the limit, requests are refused from memory, without the database.
    inMemoryBlockOnConsumed: requests,
  })
  // A method of 11.4.0 that its types leave out.
  const { getInMemoryBlockMsBeforeExpire: emptyFor } = limiter as unknown as {
    getInMemoryBlockMsBeforeExpire(key: string): number
  }
  return {
    consume: (key) => limiter.consume(key),
    emptyFor: (key) => emptyFor.call(limiter, limiter.getKey(key)),
  }
}

/** A hash, because addresses and emails are personal data. */
function bucketOf(key: string): string {
  // Sockets for both families write IPv4 addresses so (RFC 4291 section 2.5.5.2).
  const plain = key.replace(/^::ffff:(?=[\d.]+$)/i, '')
  return hash('sha256', networkOf(plain), 'base64url')
}

/** The /64 of an IPv6 address, the size of one household's or server's network; in one spelling. Any other text is returned as it is. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const before = head.split(':').filter((part) => part !== '')
  const after = tail?.split(':').filter((part) => part !== '') ?? []
  const zeros = Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0')
  const groups = tail === undefined ? before : [...before, ...zeros, ...after]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

/** Buckets whose window is over. One that begins anew meanwhile stays. */
export const deleteExpiredLimits = (db: Db, now: Date, batch: number): Promise<number> =>
  deleteExpired(db, {
    table: 'service.rate_limit',
    key: 'key',
    until: 'expire',
    before: String(now.getTime()),
    batch,
  })
