import { tagsOfAnswer } from '#databases/clients/announce-writes.ts'
import type { CountPlan, ReadPlan } from '#databases/plan/plan.ts'
import { tablesOf } from '#databases/plan/required-rights.ts'
import { createTaggedCache } from '#kernel/db/coherent-cache.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller/caller.ts'

/** Cache status of a response; undefined if the client has no cache. */
export type Outcome = 'hit' | 'miss' | 'bypass' | undefined

export type ReadCache<T> = (
  asked: CachedRead,
  read: () => Promise<T>,
) => Promise<{ value: T; outcome: Outcome }>

type CachedRead = {
  readonly caller: GatewayCaller
  readonly plan: ReadPlan | CountPlan
  /** Cache key: request, role and claims. */
  readonly key: string
  /** Whether the caller bypasses the cache. */
  readonly fresh: boolean
}

type Entry<T> = { readonly value: T; readonly tags: readonly string[]; readonly at: number }

/**
 * Response cache (gateway.md 17). Entries expire after `gateway.cache.ttl` and are invalidated by writes through the gateway. Rights are
 * checked before a lookup; only results of the database are cached.
 */
export function createReadCache<T>(
  kernel: Kernel,
  { max, weigh }: { readonly max: number; readonly weigh: (value: T) => number },
): ReadCache<T> {
  const { ttl } = kernel.config.gateway.cache
  const now = () => kernel.now().getTime()
  const cache = createTaggedCache<Entry<T>>({
    coherence: kernel.coherence,
    max,
    weigh: ({ value }) => weigh(value),
    // In both directions, because the clock of the database can be set back.
    isFresh: ({ at }) => Math.abs(now() - at) < ttl,
    tags: ({ tags }) => tags,
  })
  const generation = generations()

  return async ({ caller, plan, key, fresh }, read) => {
    const { client } = caller
    if (ttl === 0 || !client.isCached) return { value: await read(), outcome: undefined }
    if (fresh) return { value: await read(), outcome: 'bypass' }
    let outcome: Outcome = 'hit'
    const load = async (): Promise<Entry<T>> => {
      outcome = 'miss'
      const at = now()
      const database = await caller.backend.identity()
      const tags = tagsOfAnswer(database, tablesOf(plan), client.rowLevelSecurity !== undefined)
      return { value: await read(), tags, at }
    }
    // A changed client may have a different database under the same name, so the key contains its generation.
    const entry = await cache.get(`${generation(client)}:${key}`, load)
    return { value: entry.value, outcome }
  }
}

function generations(): (client: object) => number {
  const known = new WeakMap<object, number>()
  let last = 0
  return (client) => {
    const found = known.get(client) ?? ++last
    known.set(client, found)
    return found
  }
}

/** Whether Cache-Control has no-cache or a stronger directive (RFC 9111, section 5.2.1). */
export const asksForFresh = (cacheControl: string | undefined): boolean =>
  cacheControl !== undefined && /(?:^|[\s,])(?:no-cache|no-store|max-age=0)(?:$|[\s,;])/i.test(cacheControl)
