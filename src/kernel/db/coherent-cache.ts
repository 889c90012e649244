import type { Coherence } from './coherence.ts'

/**
 * A cache whose entries are dropped in every process as soon as a row changes that they were read from. While caches
 * are not trusted (see `Coherence`), every `get` is a load.
 */
export type CoherentCache<Value> = {
  get(key: string): Promise<Value | undefined>
  /** The entry, if it is cached and trusted: the path without a promise. */
  peek(key: string): Value | undefined
  /** Drops an entry after a change that has no trigger. */
  forget(key: string): void
}

type CacheOptions<Value> = TaggedOptions<Value> & {
  readonly load: (key: string) => Promise<Value | undefined>
}

export function createCoherentCache<Value>(options: CacheOptions<Value>): CoherentCache<Value> {
  const { peek, get, forget } = createTaggedCache(options)
  return { peek, forget, get: (key) => get(key, options.load) }
}

type TaggedCache<Value> = Pick<CoherentCache<Value>, 'peek' | 'forget'> & {
  get<Loaded extends Value | undefined>(
    key: string,
    load: (key: string) => Promise<Loaded>,
  ): Promise<Value | Loaded>
}

type TaggedOptions<Value> = {
  readonly coherence: Coherence
  /** Largest weight of all values together. */
  readonly max: number
  /** Default: 1 each. A value heavier than `max` is not kept. */
  readonly weigh?: (value: Value) => number
  /** Whether a value may still be returned; without it, values do not expire. */
  readonly isFresh?: (value: Value) => boolean
  /** The rows that a value was read from, as notifications name them: `session:ID`, `user:ID`. */
  readonly tags: (value: Value) => readonly string[]
}

/** The same, with a load of its own for each `get`. */
export function createTaggedCache<Value>(options: TaggedOptions<Value>): TaggedCache<Value> {
  const { coherence, tags, isFresh = () => true } = options
  const store = createTaggedStore(options)
  /** The changes since each running load began; `all` when they are unknown. */
  const loads = new Set<{ changed: Set<string>; all: boolean }>()

  coherence.subscribe({
    apply(tag) {
      for (const running of loads) running.changed.add(tag)
      store.dropTagged(tag)
    },
    clear() {
      for (const running of loads) running.all = true
      store.clear()
    },
  })

  const peek = (key: string): Value | undefined => {
    const held = coherence.isTrusted() ? store.find(key) : undefined
    return held !== undefined && isFresh(held) ? held : undefined
  }

  return {
    peek,
    forget: store.drop,
    async get(key, load) {
      const held = peek(key)
      if (held !== undefined) return held
      const running = { changed: new Set<string>(), all: !coherence.isTrusted() }
      loads.add(running)
      try {
        const value = await load(key)
        // A change that arrived during the load may be newer than the loaded row.
        if (value !== undefined && !running.all && !tags(value).some((tag) => running.changed.has(tag)))
          store.keep(key, value)
        return value
      } finally {
        loads.delete(running)
      }
    },
  }
}

type TaggedStore<Value> = {
  find(key: string): Value | undefined
  /** Drops the oldest entries until there is room. */
  keep(key: string, value: Value): void
  drop(key: string): void
  dropTagged(tag: string): void
  clear(): void
}

function createTaggedStore<Value>({
  tags,
  max,
  weigh = () => 1,
}: Pick<TaggedOptions<Value>, 'tags' | 'max' | 'weigh'>): TaggedStore<Value> {
  const entries = new Map<string, Value>()
  const keysByTag = new Map<string, Set<string>>()
  let weight = 0

  const drop = (key: string): void => {
    const value = entries.get(key)
    if (value === undefined) return
    entries.delete(key)
    weight -= weigh(value)
    for (const tag of tags(value)) {
      const keys = keysByTag.get(tag)
      keys?.delete(key)
      if (keys?.size === 0) keysByTag.delete(tag)
    }
  }

  return {
    find: (key) => entries.get(key),
    drop,
    keep(key, value) {
      drop(key)
      const added = weigh(value)
      if (added > max) return
      for (const oldest of entries.keys()) {
        if (weight + added <= max) break
        drop(oldest)
      }
      entries.set(key, value)
      weight += added
      for (const tag of tags(value)) {
        const keys = keysByTag.get(tag)
        if (keys === undefined) keysByTag.set(tag, new Set([key]))
        else keys.add(key)
      }
    },
    dropTagged(tag) {
      for (const key of keysByTag.get(tag) ?? []) drop(key)
    },
    clear() {
      entries.clear()
      keysByTag.clear()
      weight = 0
    },
  }
}
