import { generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'

/** Signatures of JSON web tokens (RFC 7518, 3.4; RFC 8037, 3.1). */
export type JwtAlgorithm = 'ES256' | 'EdDSA'

export type SigningKey = {
  readonly kid: string
  readonly algorithm: JwtAlgorithm
  readonly privateKey: KeyObject
}

export type VerificationKey = { readonly algorithm: JwtAlgorithm; readonly publicKey: KeyObject }

/** A public key as RFC 7517 writes it. */
export type PublicJwk = {
  readonly kty: 'EC' | 'OKP'
  readonly crv: 'P-256' | 'Ed25519'
  readonly x: string
  readonly y?: string
}

export type Claims = Readonly<Record<string, unknown>>
export type Jwt = { readonly header: Claims; readonly claims: Claims }

/** A public key and its private one, as PKCS 8 in PEM. */
export function generateKey(algorithm: JwtAlgorithm): {
  readonly publicJwk: PublicJwk
  readonly privateKey: string
} {
  const pair =
    algorithm === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519')
  return {
    // Of these two kinds of keys.
    publicJwk: pair.publicKey.export({ format: 'jwk' }) as PublicJwk,
    privateKey: pair.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
  }
}

/**
 * A token in compact form (RFC 7515). Synchronous: `crypto.subtle` would wait in the thread pool behind password hashes, which beside four of
 * them leaves 27 signatures a second of 8,900.
 */
export function signJwt(
  { kid, algorithm, privateKey }: SigningKey,
  claims: Claims,
  header: Claims = {},
): string {
  const signed = `${encode({ alg: algorithm, typ: 'JWT', kid, ...header })}.${encode(claims)}`
  const signature = sign(DIGEST[algorithm], Buffer.from(signed), { key: privateKey, ...FORM })
  return `${signed}.${signature.toString('base64url')}`
}

/**
 * Header and claims of a token that one of these keys has signed; undefined for any other text. The key decides about the algorithm, so that a
 * header cannot choose one.
 */
export function verifyJwt(
  token: string,
  keyOf: (kid: string) => VerificationKey | undefined,
): Jwt | undefined {
  const [head = '', body = '', mac = '', ...rest] = token.length > MAX_LENGTH ? [] : token.split('.')
  const [headBytes, bodyBytes, signature] = [decode(head), decode(body), decode(mac)]
  if (rest.length > 0 || headBytes === undefined || bodyBytes === undefined || signature === undefined)
    return undefined
  const header = parse(headBytes)
  const key = header && keyOfHeader(header, keyOf)
  if (header === undefined || key === undefined) return undefined
  const { algorithm, publicKey } = key
  const signed = Buffer.from(`${head}.${body}`)
  if (!verify(DIGEST[algorithm], signed, { key: publicKey, ...FORM }, signature)) return undefined
  const claims = parse(bodyBytes)
  return claims && { header, claims }
}

function keyOfHeader(
  { alg, kid, typ = 'JWT', crit, b64 }: Claims,
  keyOf: (kid: string) => VerificationKey | undefined,
): VerificationKey | undefined {
  // An extension that is critical is unknown here (RFC 7515, 4.1.11).
  if (typeof kid !== 'string' || typ !== 'JWT' || crit !== undefined || b64 !== undefined) return undefined
  const key = keyOf(kid)
  return key?.algorithm === alg ? key : undefined
}

/** Ed25519 has a digest of its own. */
const DIGEST = { ES256: 'sha256', EdDSA: null } as const
/** R and S beside each other (RFC 7518, 3.4), where OpenSSL has DER; Ed25519 ignores it. */
const FORM = { dsaEncoding: 'ieee-p1363' } as const

/** Characters; tokens of ours have less than half. */
const MAX_LENGTH = 8_192

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Undefined for texts that are not the one base64url form of their bytes, since Node's decoder skips what it does not know. */
function decode(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return text !== '' && bytes.toString('base64url') === text ? bytes : undefined
}

function parse(bytes: Buffer): Claims | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Claims)
      : undefined
  } catch {
    return undefined
  }
}
