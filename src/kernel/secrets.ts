import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync } from 'node:crypto'
import { type Random, randomToken } from './random.ts'

/** Kinds of values that are sealed. A key of one purpose opens nothing that was sealed for another. docs/operations.md lists them. */
export const SEALED = [
  'client-direct-url',
  'client-url',
  'jwt-key',
  'known-device',
  'mail',
  'mail-request',
  'provider-token',
  'realtime-ticket',
  'social-state',
  'two-factor-secret',
  'webhook-headers',
  'webhook-secret',
] as const
export type SealPurpose = (typeof SEALED)[number]

/** Uses of keys from which passwords, tags and hashes are derived. */
export const DERIVED = [
  'backup',
  'captcha',
  'database-role',
  'device-user-code',
  'id-token-nonce',
  'installation',
  'link-code',
  'mail-recipient',
  'realtime-event',
  'sign-up',
  'two-factor-code',
] as const
type DerivePurpose = (typeof DERIVED)[number]

/**
 * The row or the person that a sealed value belongs to, in a text that no caller chooses. A value that is copied to another owner does not
 * open. Null: the value is in no row, and belongs to its bearer.
 */
type Owner<Purpose extends SealPurpose> = Purpose extends 'known-device' ? null : string

export type Secrets = {
  /** Encrypts a text as `v1.KEYID.DATA`: AES-256-GCM under the key of the purpose. The owner is authenticated with it. */
  seal<Purpose extends SealPurpose>(purpose: Purpose, plain: string, owner: Owner<Purpose>): string
  /** The text that was sealed, also under the previous secret; undefined when it was altered or sealed elsewhere or for another owner. */
  open<Purpose extends SealPurpose>(
    purpose: Purpose,
    sealed: string,
    owner: Owner<Purpose>,
  ): string | undefined
  /** A text that a version before 0.1.0 has sealed without an owner. Only the upgrade may open it (bind-sealed.ts). */
  openUnbound(purpose: SealPurpose, sealed: string): string | undefined
  /** Whether it was sealed under the current secret, so that the previous one is not needed to open it. */
  isCurrent(sealed: string): boolean
  /** Names the current secret in the header of what it has sealed, without telling anything about it. */
  readonly keyId: string
  /** Which secret has this id; undefined for another installation's. */
  ageOf(keyId: string): 'current' | 'previous' | undefined
  /** Whether there is a previous secret. */
  readonly isRotating: boolean
  /**
   * A password or tag derived from the secret, the purpose and the name; 43 characters of base64url. Without a previous
   * secret, the current one is used for `previous`.
   */
  derive(purpose: DerivePurpose, name: string, age?: 'current' | 'previous'): string
}

/**
 * Keys per purpose by HKDF-SHA-256 (RFC 5869). `previous` still opens what it sealed, so that a secret can be
 * rotated without loss of data.
 */
export function createSecrets(secret: string, random: Random, previous?: string): Secrets {
  const current = ringOf(secret)
  const rings = previous === undefined ? [current] : [current, ringOf(previous)]
  const openBound = (purpose: SealPurpose, sealed: string, owner: string | null): string | undefined => {
    const [version, id, data] = sealed.split('.')
    const ring = rings.find((candidate) => candidate.id === id)
    if (version !== 'v1' || ring === undefined || data === undefined) return undefined
    return decrypt(ring.key(purpose), boundTo(purpose, owner), Buffer.from(data, 'base64url'))
  }
  return {
    seal(purpose, plain, owner) {
      const iv = random(12)
      const cipher = createCipheriv('aes-256-gcm', current.key(purpose), iv).setAAD(boundTo(purpose, owner))
      const sealed = Buffer.concat([iv, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `v1.${current.id}.${sealed.toString('base64url')}`
    },
    open: openBound,
    openUnbound: (purpose, sealed) => openBound(purpose, sealed, null),
    keyId: current.id,
    ageOf: (keyId) => (['current', 'previous'] as const)[rings.findIndex(({ id }) => id === keyId)],
    isRotating: previous !== undefined,
    isCurrent: (sealed) => sealed.startsWith(`v1.${current.id}.`),
    derive(purpose, name, age = 'current') {
      const ring = (age === 'previous' ? rings[1] : undefined) ?? current
      return createHmac('sha256', ring.key(purpose)).update(name).digest('base64url')
    },
  }
}

type Ring = { readonly id: string; key(purpose: SealPurpose | DerivePurpose): Buffer }

function ringOf(secret: string): Ring {
  const keys = new Map<SealPurpose | DerivePurpose, Buffer>()
  return {
    id: hash('sha256', `gatehouse key id:${secret}`).slice(0, 8),
    key(purpose) {
      let key = keys.get(purpose)
      if (key === undefined) {
        key = Buffer.from(hkdfSync('sha256', secret, 'gatehouse', purpose, 32))
        keys.set(purpose, key)
      }
      return key
    },
  }
}

/** The data that is authenticated and not encrypted. */
const boundTo = (purpose: SealPurpose, owner: string | null): Buffer =>
  Buffer.from(owner === null ? purpose : `${purpose} ${owner}`)

function decrypt(key: Buffer, bound: Buffer, data: Buffer): string | undefined {
  if (data.length < 28) return undefined
  const decipher = createDecipheriv('aes-256-gcm', key, data.subarray(0, 12)).setAAD(bound)
  decipher.setAuthTag(data.subarray(-16))
  try {
    return Buffer.concat([decipher.update(data.subarray(12, -16)), decipher.final()]).toString('utf8')
  } catch {
    // The tag does not match: altered, or sealed for something else.
    return undefined
  }
}

/** A new secret in the form that `SERVICE_SECRET` takes. */
export const newSecret = (random: Random): string => randomToken(random)
