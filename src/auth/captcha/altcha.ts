import { hash } from 'node:crypto'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { spendOnce } from '#identity/tickets.ts'
import type { Kernel } from '#kernel/kernel.ts'

const Hex = Type.String({ pattern: '^[0-9a-f]*$', maxLength: 128 })

/** A challenge of ALTCHA's proof of work, version 2. */
export const Challenge = Type.Object(
  {
    parameters: Type.Object(
      {
        algorithm: Type.String({ maxLength: 32 }),
        cost: Type.Integer(),
        expiresAt: Type.Integer({ description: 'In seconds' }),
        keyLength: Type.Integer(),
        keyPrefix: Hex,
        nonce: Hex,
        salt: Hex,
      },
      { additionalProperties: false },
    ),
    signature: Hex,
  },
  { additionalProperties: false },
)
export type Challenge = Static<typeof Challenge>

/** The payload of the widget. */
const payload = Compile(
  Type.Object({
    challenge: Challenge,
    solution: Type.Object({ counter: Type.Integer(), derivedKey: Hex }),
  }),
)

/** The header has about 700 characters; more is no payload. */
const MAX_LENGTH = 4_096

/** A challenge that only this installation can have signed. Nothing is stored for it. */
export async function newChallenge(kernel: Kernel): Promise<Challenge> {
  const { cost, expires_in } = kernel.config.auth.captcha.altcha
  const { createChallenge, deriveKey } = await loadLibrary()
  const { parameters, signature } = await createChallenge({
    algorithm: 'PBKDF2/SHA-256',
    cost,
    deriveKey,
    expiresAt: new Date(kernel.now().getTime() + expires_in),
    hmacSignatureSecret: secretOf(kernel),
  })
  // JSON leaves out what is undefined.
  return JSON.parse(JSON.stringify({ parameters, signature }))
}

/** Whether this is a solution of a challenge of ours that has not expired, presented for the first time. */
export async function isSolved(kernel: Kernel, response: string): Promise<boolean> {
  const given = readPayload(response)
  if (given === undefined) return false
  const { challenge, solution } = given
  const expiresAt = new Date(challenge.parameters.expiresAt * 1_000)
  if (expiresAt <= kernel.now()) return false
  const { verifySolution, deriveKey } = await loadLibrary()
  const { verified } = await verifySolution({
    challenge,
    solution,
    deriveKey,
    hmacSignatureSecret: secretOf(kernel),
  })
  return verified && spendOnce(kernel, 'captcha', hash('sha256', challenge.signature, 'buffer'), expiresAt)
}

/** Only a service with this provider needs it. */
async function loadLibrary() {
  const [{ createChallenge, verifySolution }, { deriveKey }] = await Promise.all([
    import('altcha-lib'),
    import('altcha-lib/algorithms/pbkdf2'),
  ])
  return { createChallenge, verifySolution, deriveKey }
}

const secretOf = ({ secrets }: Kernel): string => secrets.derive('captcha', 'altcha')

function readPayload(response: string) {
  if (response.length > MAX_LENGTH) return undefined
  try {
    const given: unknown = JSON.parse(Buffer.from(response, 'base64').toString())
    return payload.Check(given) ? given : undefined
  } catch {
    return undefined
  }
}
