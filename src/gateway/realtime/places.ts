import type { Config } from '#kernel/config/config.ts'
import { networkOf } from '#kernel/http/limits/limits.ts'
import { fail } from '../errors.ts'

/** The streams of this process: in all, for each key, for each public route without keys, and for each address. */
export type Places = {
  /** Takes a place, until the returned function is called. Throws `too_many_streams`. */
  take(caller: PlaceTaker): () => void
  taken(): number
}

type PlaceTaker = {
  readonly key: string | undefined
  readonly route: string | undefined
  readonly address: string
}

export function createPlaces({ limits }: Pick<Config, 'limits'>): Places {
  const { streams, streams_per_caller, streams_per_address } = limits
  const counts = new Map<string, number>()
  return {
    take({ key, route, address }) {
      const wanted = [
        { name: ALL, most: streams, setting: 'limits.streams' },
        ...(key === undefined
          ? []
          : [
              {
                name: `key:${key}`,
                most: streams_per_caller ?? Math.ceil(streams / 2),
                setting: 'limits.streams_per_caller',
              },
            ]),
        ...(route === undefined
          ? []
          : [{ name: `route:${route}`, most: Math.ceil(streams / 2), setting: 'limits.streams' }]),
        {
          name: `address:${networkOf(address)}`,
          most: streams_per_address,
          setting: 'limits.streams_per_address',
        },
      ]
      for (const { name, most, setting } of wanted)
        if ((counts.get(name) ?? 0) >= most)
          throw fail('too_many_streams', {
            hint: `At most ${most} (${setting})`,
            details: { maximum: most, setting },
          })
      for (const { name } of wanted) counts.set(name, (counts.get(name) ?? 0) + 1)
      return once(() => {
        for (const { name } of wanted) {
          const left = (counts.get(name) ?? 1) - 1
          if (left === 0) counts.delete(name)
          else counts.set(name, left)
        }
      })
    },
    taken: () => counts.get(ALL) ?? 0,
  }
}

const ALL = 'all'

export function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
