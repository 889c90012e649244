import { Secret, TOTP } from 'otpauth'
import type { Random } from '#kernel/random.ts'

/** Time-based one-time passwords (RFC 6238): SHA-1, 6 digits, 30 seconds. Most authenticator apps know no others. */
const FORM = { algorithm: 'SHA1', digits: 6, period: 30 }
/** Steps before and after the present one that are accepted (RFC 6238 section 5.2). */
const WINDOW = 1

/** 20 random bytes in base32, the length that RFC 4226 section 4 recommends. */
export const newTotpSecret = (random: Random): string =>
  new Secret({ buffer: new Uint8Array(random(20)).buffer }).base32

/** The time step that the code belongs to; undefined when it is not right at this time. */
export function totpStep(secret: string, code: string, now: Date): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined
  const timestamp = now.getTime()
  const wanted = { ...FORM, secret: Secret.fromBase32(secret) }
  const delta = TOTP.validate({ ...wanted, token: code, timestamp, window: WINDOW })
  return delta === null ? undefined : Math.floor(timestamp / 1_000 / FORM.period) + delta
}

/** The URI that authenticator apps read from a QR code. */
export const totpUri = (secret: string, { issuer, label }: { issuer: string; label: string }): string =>
  new TOTP({ ...FORM, secret: Secret.fromBase32(secret), issuer, label }).toString()
