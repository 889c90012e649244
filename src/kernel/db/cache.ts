import type { Coherence } from './coherence.ts'

/**
 * A cache whose entries are dropped the moment a row they were read from changes, in every process. While the caches
 * may not be believed (see `Coherence`), every `get` is a load.
 */
export type CoherentCache<Value> = {
  get(key: string): Promise<Value | undefined>
  /** The entry, only if it is here and may be believed: the path without a promise. */
  peek(key: string): Value | undefined
}

export type CacheOptions<Value> = {
  readonly coherence: Coherence
  readonly max: number
  readonly load: (key: string) => Promise<Value | undefined>
  /** The rows that a value was read from, as the triggers name them: `session:ID`, `user:ID`. */
  readonly tags: (value: Value) => readonly string[]
}

export function coherentCache<Value>(options: CacheOptions<Value>): CoherentCache<Value> {
  const { coherence, load, tags, max } = options
  const entries = new Map<string, Value>()
  const keysByTag = new Map<string, Set<string>>()
  /** What has changed since each running load began; `all` when that is unknown. */
  const loads = new Set<{ changed: Set<string>; all: boolean }>()

  const drop = (key: string): void => {
    const value = entries.get(key)
    if (value === undefined) return
    entries.delete(key)
    for (const tag of tags(value)) {
      const keys = keysByTag.get(tag)
      keys?.delete(key)
      if (keys?.size === 0) keysByTag.delete(tag)
    }
  }

  const keep = (key: string, value: Value): void => {
    drop(key)
    if (entries.size >= max) {
      const oldest = entries.keys().next().value
      if (oldest !== undefined) drop(oldest)
    }
    entries.set(key, value)
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
      keysByTag.clear()
    },
  })

  const peek = (key: string): Value | undefined => (coherence.isTrusted() ? entries.get(key) : undefined)

  return {
    peek,
    async get(key) {
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
