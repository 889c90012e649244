import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { openHeaders } from '../headers.ts'
import { type EndpointRow, findEndpoint } from '../store.ts'

/** A webhook as an attempt uses it, with its secrets opened. */
export type Endpoint = {
  readonly id: string
  readonly url: string
  readonly isActive: boolean
  readonly headers: Readonly<Record<string, string>>
  readonly secret: string
  /** Secrets before rotations, oldest first. Each signs too until its end. */
  readonly former: readonly { readonly secret: string; readonly until: Date }[]
  readonly timeoutMs: number
}

/** Secrets that sign at this time, the newest first. */
export function signingSecrets({ secret, former }: Endpoint, now: Date): readonly string[] {
  const signing = former.filter(({ until }) => now < until).map((one) => one.secret)
  return [...signing, secret].reverse()
}

/** The secret was sealed under another SERVICE_SECRET. */
export class UnreadableEndpoint extends Error {
  readonly url: string

  constructor(url: string) {
    super(
      'The secret of this webhook was sealed under another SERVICE_SECRET; rotate it and set its headers again.',
    )
    this.url = url
  }
}

/** Finds a webhook as it is now; undefined when it is removed. Throws `UnreadableEndpoint`. */
type FindEndpoint = (id: string) => Promise<Endpoint | undefined>

const MAX_ENDPOINTS = 1_000

/** From a cache that every change of a webhook empties, in every process. */
export function createEndpoints(kernel: Pick<Kernel, 'db' | 'secrets' | 'coherence'>): FindEndpoint {
  const cache = createCoherentCache<Endpoint>({
    coherence: kernel.coherence,
    max: MAX_ENDPOINTS,
    tags: () => ['webhook'],
    async load(id) {
      const row = await findEndpoint(kernel.db, id)
      return row && openEndpoint(kernel, row)
    },
  })
  return cache.get
}

export function openEndpoint({ secrets }: Pick<Kernel, 'secrets'>, row: EndpointRow): Endpoint {
  const open = (sealed: string | null) =>
    sealed === null ? undefined : secrets.open('webhook-secret', sealed, row.id)
  return {
    id: row.id,
    url: row.url,
    isActive: row.isActive,
    headers: readable(openHeaders({ secrets }, row), row),
    secret: readable(open(row.sealedSecret), row),
    // One that cannot be opened is left out: it must not keep the secret that has replaced it from signing.
    former: row.formerSecretsUntil.flatMap((until, index) => {
      const secret = open(row.sealedFormerSecrets[index] ?? null)
      return secret === undefined ? [] : [{ secret, until }]
    }),
    timeoutMs: row.timeoutMs,
  }
}

function readable<T>(opened: T | undefined, { url }: EndpointRow): T {
  if (opened === undefined) throw new UnreadableEndpoint(url)
  return opened
}
