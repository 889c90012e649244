import type { Catalogue } from '#databases/plan/catalogue.ts'

export type CatalogueCache<C extends Catalogue = Catalogue> = {
  current(): Promise<C>
  /** Reads again, unless the cached one is less than a second old: a name that is not found may be new. */
  fresh(): Promise<C>
  invalidate(): void
}

/** Up to SOFT_AGE the cached catalogue is served; then it is served while it is read again; above HARD_AGE callers wait. Milliseconds. */
const SOFT_AGE = 30_000
const HARD_AGE = 300_000
const RECENT = 1_000

/** Caches the catalogue of one client: read on demand, by one reader at a time, never older than HARD_AGE. */
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
      // A catalogue read before an invalidation may lack the change that caused it.
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
      // When it fails, the next caller reads again.
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

/** Whether the SQL contains a word that may change the structure. `insert into` and `on conflict do …` do not. */
export const isStructural = (text: string): boolean => STRUCTURAL.test(text)
const STRUCTURAL =
  /\b(?:create|alter|drop|import|call|do(?!\s+(?:nothing|update)\b)|(?<!\b(?:insert|merge)\s+)into)\b/i
