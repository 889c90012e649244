import type { FastifyRequest } from 'fastify'
import type { Clients } from '#databases/clients/clients.ts'
import { type CoherentCache, createCoherentCache } from '#kernel/db/coherent-cache.ts'
import { asksToOperate } from '#kernel/http/session-cookie.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { AdminKey } from '../keys/admin-key.ts'
import { type ApiKey, keyNamed } from '../keys/keys.ts'
import { presentedKey, provenKey } from '../keys/presented-key.ts'
import { createKeyUses } from '../keys/uses.ts'
import { clientHeader } from './called-client.ts'
import type { Grant } from './grant.ts'
import type { SessionGrants } from './operating-session.ts'

/** Determines the grant of a request from its key, or from the session that it operates by. */
export type Grants = {
  /** Throws if the key is invalid. `clientName`: the client of the request, by default that of the header. */
  of(request: FastifyRequest, clientName?: string): Promise<Grant>
  /** Whether the key has expired, or was changed or revoked, since the grant was determined. A session is looked up again, in memory. */
  hasChanged(grant: Grant): boolean
}

export function createGrants(
  kernel: Kernel,
  clients: Clients,
  operator: AdminKey,
  ofSession: SessionGrants,
): Grants {
  const keys: CoherentCache<ApiKey> = createCoherentCache({
    coherence: kernel.coherence,
    max: 10_000,
    load: (publicId) => keyNamed(kernel, publicId),
    tags: ({ publicId }) => [`api_key:${publicId}`],
  })
  const noteUse = createKeyUses(kernel)
  return {
    async of(request, clientName = clientHeader(request)) {
      if (asksToOperate(request)) return ofSession(request)
      const hasSessions = await clients.hasRowLevelSecurity(clientName ?? '')
      const presented = presentedKey(request, operator.isSame, hasSessions)
      if (presented === undefined) return NO_KEY
      if (await operator.proves(request, presented)) return { kind: 'admin' }
      const proven = await provenKey(kernel, keys, presented)
      noteUse(proven.key.id)
      return { kind: 'key', ...proven }
    },
    hasChanged(grant) {
      if (grant.kind !== 'key') return grant.kind === 'session'
      const hasRunOut = grant.until !== null && grant.until <= kernel.now()
      return hasRunOut || keys.peek(grant.key.publicId) !== grant.key
    },
  }
}

/** One object, so that a caller without a key is found to be the same as before. */
const NO_KEY: Grant = { kind: 'none' }
