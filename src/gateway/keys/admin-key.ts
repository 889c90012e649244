import type { FastifyRequest } from 'fastify'
import { HEADER } from '#kernel/http/header-names.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { isApiKey } from '../caller-role.ts'
import { sameAs } from './presented-key.ts'

/** The static admin key, and beside it the token of `metrics.token`: the two texts that whoever guesses could try. */
export type AdminKey = {
  /** Compares, and counts nothing: for telling keys from sessions. */
  isSame(text: string): boolean
  /** Whether the text is the key; of an address that has tried too many wrong ones, 429. */
  proves(request: FastifyRequest, text: string): Promise<boolean>
  /** Whether the header of its own holds it; undefined without that header. */
  provesByHeader(request: FastifyRequest): Promise<boolean | undefined>
  /** Whether the Bearer token is that of `metrics.token`. Another one may still be the key. */
  provesScraper(request: FastifyRequest): Promise<boolean>
}

/**
 * Wrong keys are counted by address, wherever they are tried. An address that has used up its limit is refused before the
 * comparison tells anything, with the right key too.
 */
export function adminKeyOf({ config, limits }: Kernel, adminKey: string): AdminKey {
  const isSameAsKey = sameAs(adminKey)
  // What looks like a client-bound key is not compared, unless the operator's looks like one too.
  const isCompared = isApiKey(adminKey) ? () => true : (text: string) => !isApiKey(text)
  const isSame = (text: string) => isCompared(text) && isSameAsKey(text)
  const { token } = config.metrics
  const isScraper = token === undefined ? () => false : sameAs(`Bearer ${token}`)
  const admitted = (request: FastifyRequest) => limits.expectRoom('admin_key', request.clientAddress)

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
