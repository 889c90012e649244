import { createPublicKey } from 'node:crypto'
import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { singleFlight } from '#kernel/single-flight.ts'
import type { Jwt, JwtAlgorithm, PublicJwk, SigningKey, VerificationKey } from './jws.ts'
import { type JwtKey, listJwtKeys } from './key-store.ts'
import { keepJwtKeys, privateKeyOf } from './keys.ts'

/** The published keys, opened. */
export type KeyRing = {
  /** Undefined when there is none, or no secret of this process opens it. */
  readonly signing: SigningKey | undefined
  readonly published: ReadonlyMap<string, VerificationKey>
  /** The set of public keys (RFC 7517). */
  readonly jwks: { readonly keys: PublishedKey[] }
  /** Tokens that these keys have signed, by a hash of the token. They are forgotten with the ring. */
  readonly verified: Map<string, Jwt>
}

type PublishedKey = PublicJwk & { readonly kid: string; readonly alg: JwtAlgorithm; readonly use: 'sig' }

export type JwtKeys = {
  /** From memory, if the process holds them and a lease. */
  held(): KeyRing | undefined
  /** From memory while the process holds a lease, else by one query. */
  ring(): Promise<KeyRing> | KeyRing
  /** The same, after the first keys are made where there are none. */
  ringWithKeys(): Promise<KeyRing>
}

/** One entry of the cache for the whole table. */
const ALL = 'all'

export function createJwtKeys(kernel: Kernel): JwtKeys {
  const cache = createCoherentCache<KeyRing>({
    coherence: kernel.coherence,
    max: 1,
    load: async () => ringOf(kernel.secrets, await listJwtKeys(kernel.db)),
    tags: () => ['jwt_key'],
  })
  const makeKeys = singleFlight(() => keepJwtKeys(kernel))
  const load = async (): Promise<KeyRing> => (await cache.get(ALL)) ?? ringOf(kernel.secrets, [])
  const held = () => cache.peek(ALL)
  const ring = () => held() ?? load()
  return {
    held,
    ring,
    async ringWithKeys() {
      const found = await ring()
      if (found.published.size > 0) return found
      await makeKeys()
      // Another process may have made them a moment ago, so that its notification is still to come.
      cache.forget(ALL)
      return ring()
    },
  }
}

function ringOf(secrets: Secrets, keys: readonly JwtKey[]): KeyRing {
  const published = keys.filter(({ state }) => state !== 'retired')
  const signing = published.find(({ state }) => state === 'signing')
  return {
    signing: signing && signingKey(secrets, signing),
    published: new Map(published.map((key) => [key.id, verificationKey(key)])),
    jwks: { keys: published.map(publishedKey) },
    verified: new Map(),
  }
}

function signingKey(secrets: Secrets, key: JwtKey): SigningKey | undefined {
  const privateKey = privateKeyOf(secrets, key)
  return privateKey && { kid: key.id, algorithm: key.algorithm, privateKey }
}

const verificationKey = (key: JwtKey): VerificationKey => ({
  algorithm: key.algorithm,
  publicKey: createPublicKey({ key: { ...jwkOf(key) }, format: 'jwk' }),
})

const publishedKey = (key: JwtKey): PublishedKey => ({
  ...jwkOf(key),
  kid: key.id,
  alg: key.algorithm,
  use: 'sig',
})

/** Written by `generateKey`. */
const jwkOf = ({ publicJwk }: JwtKey): PublicJwk => publicJwk as PublicJwk
