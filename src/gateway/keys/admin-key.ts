import type { FastifyRequest } from 'fastify'
import { HEADER } from '#kernel/http/header-names.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { isApiKey } from '../caller/caller-role.ts'
import { sameAs } from './presented-key.ts'

/** The static admin key and `metrics.token`, the two secrets that an attacker could guess. */
export type AdminKey = {
  /** Compares without counting, to distinguish keys from session tokens. */
  isSame(text: string): boolean
  /** Whether the text is the key. Throws 429 if the address has tried too many wrong keys. */
  proves(request: FastifyRequest, text: string): Promise<boolean>
  /** Whether the admin key's own header contains the key; undefined without that header. */
  provesByHeader(request: FastifyRequest): Promise<boolean | undefined>
  /** Whether the Bearer token is `metrics.token`. A different token may still be an API key. */
  provesScraper(request: FastifyRequest): Promise<boolean>
}

/**
 * Wrong keys are counted by address across all routes. An address above the limit is rejected before the comparison, even with the correct
 * key, so that the response reveals nothing.
 */
export function adminKeyOf({ config, limits }: Kernel, adminKey: string): AdminKey {
  const isSameAsKey = sameAs(adminKey)
  // Texts in the form of API keys are not compared, unless the admin key has that form.
  const isCompared = isApiKey(adminKey) ? () => true : (text: string) => !isApiKey(text)
  const isSame = (text: string) => isCompared(text) && isSameAsKey(text)
  const { token } = config.metrics
  const isScraper = token === undefined ? () => false : sameAs(`Bearer ${token}`)
  // A request that has come in by a secret guesses nothing when it is judged again: guesses of others at its address do not end its answer.
  const inside = new WeakSet<FastifyRequest>()
  const admitted = async (request: FastifyRequest) => {
    if (inside.has(request)) return
    await limits.expectRoom('admin_key', request.clientAddress)
    inside.add(request)
  }

  const proves = async (request: FastifyRequest, text: string): Promise<boolean> => {
    if (isSame(text)) {
      await admitted(request)
      return true
    }
    if (!isApiKey(text)) await limits.consume('admin_key', request.clientAddress)
    return false
  }
  return {
    isSame,
    proves,
    async provesByHeader(request) {
      const text = request.headers[HEADER.adminKey]
      return typeof text === 'string' ? proves(request, text) : undefined
    },
    async provesScraper(request) {
      if (!isScraper(request.headers.authorization ?? '')) return false
      await admitted(request)
      return true
    },
  }
}
