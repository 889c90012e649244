import type { Kernel } from '#kernel/kernel.ts'
import type { Random } from '#kernel/random.ts'

/** Backup codes of one factor. */
const COUNT = 10
/** 32 characters that are not mistaken for each other, so that a random byte chooses without bias. */
const ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789'

/** Ten codes of the form `xxxxx-xxxxx`, 50 random bits each. */
export const newBackupCodes = (random: Random): string[] =>
  Array.from({ length: COUNT }, () => {
    const letters = [...random(10)].map((byte) => ALPHABET.charAt(byte % ALPHABET.length)).join('')
    return `${letters.slice(0, 5)}-${letters.slice(5)}`
  })

/** Six digits. The remainder of 64 bits has no bias that matters. */
export const newMailedCode = (random: Random): string =>
  String(random(8).readBigUInt64BE() % 1_000_000n).padStart(6, '0')

/** The code as typed, without the spaces and hyphens that people add. */
export const plainCode = (code: string): string => code.replaceAll(/[\s-]/g, '').toLowerCase()

/** Has the text the form of a backup code? */
export const isBackupCode = (code: string): boolean => /^(?=.*[a-z])[a-z2-9]{10}$/.test(plainCode(code))

type CodePurpose = 'backup' | 'mail'

/**
 * The stored forms of a code, under the current secret and the previous one. HMAC-SHA-256 under a key of its own, since a plain hash of
 * a short code hides nothing; bound to its owner and purpose, so that a copied row is worthless elsewhere.
 */
export const codeHashes = (
  { secrets }: Kernel,
  purpose: CodePurpose,
  { owner, code }: { readonly owner: string; readonly code: string },
): readonly [current: Buffer, previous: Buffer] => {
  const hashUnder = (age: 'current' | 'previous') =>
    Buffer.from(secrets.derive('two-factor-code', `${purpose}:${owner}:${plainCode(code)}`, age), 'base64url')
  return [hashUnder('current'), hashUnder('previous')]
}
