import type { Coherence } from './coherence.ts'

/**
 * A cache whose entries are dropped the moment a row they were read from changes, in every process. While the caches
 * may not be believed (see `Coherence`), every `get` is a load.
 */
export type CoherentCache<Value> = {
  get(key: string): Promise<Value | undefined>
  /** The entry, only if it is here and may be believed: the path without a promise. */
  peek(key: string): Value | undefined
  /** For a change of which no trigger tells. */
  forget(key: string): void
}

export type CacheOptions<Value> = TaggedOptions<Value> & {
  readonly load: (key: string) => Promise<Value | undefined>
}

export function createCoherentCache<Value>(options: CacheOptions<Value>): CoherentCache<Value> {
  const { peek, get, forget } = createTaggedCache(options)
  return { peek, forget, get: (key) => get(key, options.load) }
}

export type TaggedCache<Value> = Pick<CoherentCache<Value>, 'peek' | 'forget'> & {
  get<Loaded extends Value | undefined>(
    key: string,
    load: (key: string) => Promise<Loaded>,
  ): Promise<Value | Loaded>
}

export type TaggedOptions<Value> = {
  readonly coherence: Coherence
  /** What all values together may weigh. */
  readonly max: number
  /** Without it each weighs 1. One that is heavier than `max` is not kept. */
  readonly weigh?: (value: Value) => number
  /** Whether a value may still be given; without it they do not age. */
  readonly isFresh?: (value: Value) => boolean
  /** What a value was read from, as it is told when it changes: `session:ID`, `user:ID`. */
  readonly tags: (value: Value) => readonly string[]
}

/** The same, where who asks also knows how to load. */
export function createTaggedCache<Value>(options: TaggedOptions<Value>): TaggedCache<Value> {
  const { coherence, tags, max, weigh = () => 1, isFresh = () => true } = options
  let weight = 0
  const entries = new Map<string, Value>()
  const keysByTag = new Map<string, Set<string>>()
  /** What has changed since each running load began; `all` when that is unknown. */
  const loads = new Set<{ changed: Set<string>; all: boolean }>()

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

  const keep = (key: string, value: Value): void => {
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
  }

  coherence.subscribe({
    apply(tag) {
      for (const running of loads) running.changed.add(tag)
      for (const key of keysByTag.get(tag) ?? []) drop(key)
    },
    clear() {
      for (const running of loads) running.all = true
      entries.clear()
      weight = 0
      keysByTag.clear()
    },
  })

  const peek = (key: string): Value | undefined => {
    const held = coherence.isTrusted() ? entries.get(key) : undefined
    return held !== undefined && isFresh(held) ? held : undefined
  }

  return {
    peek,
    forget: drop,
    async get(key, load) {
      const held = peek(key)
      if (held !== undefined) return held
      const running = { changed: new Set<string>(), all: !coherence.isTrusted() }
      loads.add(running)
      try {
        const value = await load(key)
        // A change that arrived while the row was on its way may be newer than the row.
        if (value !== undefined && !running.all && !tags(value).some((tag) => running.changed.has(tag)))
          keep(key, value)
        return value
      } finally {
        loads.delete(running)
      }
    },
  }
}
