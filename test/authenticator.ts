import { generateKeyPairSync, hash, type KeyObject, randomBytes, sign } from 'node:crypto'

/** The parts of the options that an authenticator and its browser read. */
export type CreationOptions = {
  readonly challenge: string
  readonly rp: { readonly id: string }
  readonly user: { readonly id: string }
}
export type RequestOptions = {
  readonly challenge: string
  readonly rpId: string
  readonly allowCredentials?: readonly { readonly id: string }[]
}

/** Differences from a correct response. */
export type Fault = {
  readonly origin?: string
  readonly rpId?: string
  readonly challenge?: string
  readonly type?: string
  readonly crossOrigin?: boolean
  readonly userPresent?: boolean
  readonly userVerified?: boolean
  /** The signature counter that is sent. */
  readonly counter?: number
  readonly userHandle?: string
  /** Signs other bytes than it sends. */
  readonly signsWrongly?: boolean
  /** Registers this credential again. */
  readonly credential?: Credential
  /** The attestation statement; its format is `packed`. */
  readonly statement?: Buffer
}

export type Credential = {
  readonly id: string
  readonly rpId: string
  readonly userHandle: string
  readonly key: KeyObject
  counter: number
}

/** An authenticator and its browser in software: ES256 keys, and attestations of format `none` (WebAuthn 3 section 6). */
export type Authenticator = {
  readonly credentials: readonly Credential[]
  /** `navigator.credentials.create()` in a page of this origin; the result as JSON. */
  create(options: CreationOptions, origin: string, fault?: Fault): Attestation
  /** `navigator.credentials.get()`: with the credential that the options name, or with the last one. */
  get(options: RequestOptions, origin: string, fault?: Fault): Assertion
  /** Another authenticator with copies of these keys and counters. */
  clone(): Authenticator
}

export type Attestation = ReturnType<typeof attestation>
export type Assertion = ReturnType<typeof assertion>

/** `counts`: whether signatures are counted; passkeys that are synchronised between devices are not. */
export function createAuthenticator(
  { counts = true }: { readonly counts?: boolean } = {},
  copied: readonly Credential[] = [],
): Authenticator {
  const credentials = copied.map((credential) => ({ ...credential }))
  return {
    credentials,
    create(options, origin, fault = {}) {
      const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const id = randomBytes(16).toString('base64url')
      const fresh = { id, rpId: options.rp.id, userHandle: options.user.id, key, counter: 0 }
      const { credential = fresh } = fault
      credentials.push(credential)
      return attestation(credential, { challenge: options.challenge, origin, ...fault })
    },
    get(options, origin, fault = {}) {
      const named = options.allowCredentials?.map(({ id }) => id) ?? []
      const credential = credentials.findLast(({ id }) => named.length === 0 || named.includes(id))
      if (credential === undefined) throw new Error('the authenticator has no such credential')
      if (counts) credential.counter++
      return assertion(credential, { challenge: options.challenge, origin, ...fault })
    },
    clone: () => createAuthenticator({ counts }, credentials),
  }
}

type Told = Fault & { readonly challenge: string; readonly origin: string }

function attestation(credential: Credential, told: Told) {
  const { id } = credential
  const authData = Buffer.concat([authenticatorData(credential, told, 0x40), attestedData(credential)])
  const { statement } = told
  const object = Buffer.concat([
    ...[Buffer.of(0xa3), text('fmt'), text(statement === undefined ? 'none' : 'packed')],
    ...[text('attStmt'), statement ?? Buffer.of(0xa0)],
    ...[text('authData'), bytes(authData)],
  ])
  return {
    ...{ id, rawId: id, type: 'public-key', clientExtensionResults: {} },
    response: {
      clientDataJSON: clientData('webauthn.create', told),
      attestationObject: object.toString('base64url'),
      transports: ['internal', 'hybrid'],
    },
  }
}

function assertion(credential: Credential, told: Told) {
  const { id, key } = credential
  const authData = authenticatorData(credential, told, 0)
  const clientDataJSON = clientData('webauthn.get', told)
  const digest = hash('sha256', Buffer.from(clientDataJSON, 'base64url'), 'buffer')
  const signed = Buffer.concat([authData, told.signsWrongly === true ? digest.reverse() : digest])
  return {
    ...{ id, rawId: id, type: 'public-key', clientExtensionResults: {} },
    response: {
      clientDataJSON,
      authenticatorData: authData.toString('base64url'),
      signature: sign('sha256', signed, key).toString('base64url'),
      userHandle: told.userHandle ?? credential.userHandle,
    },
  }
}

const clientData = (type: string, { challenge, origin, crossOrigin = false, ...told }: Told): string =>
  Buffer.from(JSON.stringify({ type: told.type ?? type, challenge, origin, crossOrigin })).toString(
    'base64url',
  )

/** WebAuthn 3 section 6.1: hash of the RP ID, flags and counter. */
function authenticatorData(
  { rpId, counter }: Credential,
  { userPresent = true, userVerified = true, ...told }: Told,
  flags: number,
): Buffer {
  const data = Buffer.alloc(37)
  hash('sha256', told.rpId ?? rpId, 'buffer').copy(data)
  data.writeUInt8(flags | (userPresent ? 0x01 : 0) | (userVerified ? 0x04 : 0), 32)
  data.writeUInt32BE(told.counter ?? counter, 33)
  return data
}

/** WebAuthn 3 section 6.5.2: AAGUID, id and public key. */
function attestedData(credential: Credential): Buffer {
  const rawId = Buffer.from(credential.id, 'base64url')
  const length = Buffer.of(rawId.length >> 8, rawId.length & 0xff)
  return Buffer.concat([Buffer.alloc(16), length, rawId, coseKeyOf(credential)])
}

/** The public key as COSE key (RFC 9053 section 7.1.1). */
export function coseKeyOf({ key }: Credential): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  return Buffer.concat([
    ...[Buffer.from('a5010203262001', 'hex'), Buffer.of(0x21), bytes(Buffer.from(x, 'base64url'))],
    ...[Buffer.of(0x22), bytes(Buffer.from(y, 'base64url'))],
  ])
}

/** A byte string and a text in CBOR (RFC 8949). */
const bytes = (value: Buffer): Buffer =>
  Buffer.concat([
    value.length < 256
      ? Buffer.of(0x58, value.length)
      : Buffer.of(0x59, value.length >> 8, value.length & 0xff),
    value,
  ])
const text = (value: string): Buffer => Buffer.concat([Buffer.of(0x60 + value.length), Buffer.from(value)])
