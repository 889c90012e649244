import type { Catalogue } from '#databases/plan/catalogue.ts'

export type CatalogueCache<C extends Catalogue = Catalogue> = {
  current(): Promise<C>
  /** Read anew, unless what is there was read within the last second: a name that is not found may be new. */
  fresh(): Promise<C>
  invalidate(): void
}

/** Served as it is up to `soft`, then still served while it is read again, and above `hard` waited for. Milliseconds. */
const SOFT_AGE = 30_000
const HARD_AGE = 300_000
const RECENT = 1_000

/** The catalogue of one client: read when needed, by one reader at a time, never older than `hard`. */
export function createCatalogueCache<C extends Catalogue>(read: () => Promise<C>): CatalogueCache<C> {
  let known: { readonly catalogue: C; readonly at: number } | undefined
  let reading: Promise<C> | undefined
  let generation = 0

  function refresh(): Promise<C> {
    reading ??= load(generation)
    return reading
  }

  async function load(started: number): Promise<C> {
    try {
      const catalogue = await read()
      // What was read before an invalidation may lack what caused it.
      if (started !== generation) return await load(generation)
      known = { catalogue, at: performance.now() }
      return catalogue
    } finally {
      reading = undefined
    }
  }

  const age = (): number => (known ? performance.now() - known.at : Number.POSITIVE_INFINITY)

  return {
    async current() {
      if (!known || age() > HARD_AGE) return refresh()
      // Failing, it is read again by the next caller; this one has an answer.
      if (age() > SOFT_AGE) refresh().catch(() => {})
      return known.catalogue
    },
    async fresh() {
      return known && age() < RECENT ? known.catalogue : refresh()
    },
    invalidate() {
      known = undefined
      generation++
    },
  }
}

/** Whether words stand in SQL after which tables may look otherwise. */
export const isStructural = (text: string): boolean => /\b(?:create|alter|drop|do|call|into)\b/i.test(text)
