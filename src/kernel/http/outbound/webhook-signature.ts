import { createHmac, timingSafeEqual } from 'node:crypto'

/** The prefix of a secret in the form that is shown. The rest is base64 (Standard Webhooks specification, "Signature scheme"). */
export const SECRET_PREFIX = 'whsec_'

/** The same specification: 24 to 64 bytes in base64. */
export function isSigningSecret(text: string): boolean {
  const bytes = Buffer.from(text.slice(SECRET_PREFIX.length), 'base64')
  const isBase64 = text === `${SECRET_PREFIX}${bytes.toString('base64')}`
  return isBase64 && bytes.length >= 24 && bytes.length <= 64
}

type SignedContent = {
  readonly id: string
  /** Seconds since 1970. */
  readonly timestamp: number
  readonly body: string | Buffer
}

/** The headers of a signed request: one signature for each secret, so that a receiver may know the old or the new one. */
export function signedHeaders(
  secrets: readonly string[],
  content: SignedContent,
): Readonly<Record<string, string>> {
  return {
    'webhook-id': content.id,
    'webhook-timestamp': String(content.timestamp),
    'webhook-signature': secrets.map((secret) => signatureOf(secret, content)).join(' '),
  }
}

/** Whether one of the signatures of a request is by this secret. */
export function isSignedBy(secret: string, signatures: string, content: SignedContent): boolean {
  const expected = Buffer.from(signatureOf(secret, content))
  return signatures
    .split(' ')
    .map((one) => Buffer.from(one))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected))
}

function signatureOf(secret: string, { id, timestamp, body }: SignedContent): string {
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
