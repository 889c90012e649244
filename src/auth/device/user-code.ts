import type { Kernel } from '#kernel/kernel.ts'
import type { Random } from '#kernel/random.ts'

/** RFC 8628, 6.1: no vowels, so that no code is a word, and nothing that is mistaken for another letter. 20^8 codes are 34.5 bits. */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ'
const LENGTH = 8
/** The largest multiple of 20 in a byte: bytes from here on would make some letters more likely. */
const UNBIASED = 240

/** A new code, without its hyphen. */
export function newUserCode(random: Random): string {
  let code = ''
  while (code.length < LENGTH)
    for (const byte of random(LENGTH))
      if (byte < UNBIASED && code.length < LENGTH) code += ALPHABET.charAt(byte % ALPHABET.length)
  return code
}

/** As people read it: `WDJB-MJHT`. */
export const shownUserCode = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

/** The code that was typed, in either case and with any spaces and hyphens. Undefined when it has not the form of one. */
export function typedUserCode(typed: string): string | undefined {
  const code = typed.replaceAll(/[^a-z0-9]/gi, '').toUpperCase()
  return FORM.test(code) ? code : undefined
}

const FORM = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`)

/** The stored forms, under the current secret and the previous one. A plain hash of a short code hides nothing. */
export const userCodeHashes = (
  { secrets }: Pick<Kernel, 'secrets'>,
  code: string,
): readonly [current: Buffer, previous: Buffer] => {
  const hashUnder = (age: 'current' | 'previous') =>
    Buffer.from(secrets.derive('device-user-code', code, age), 'base64url')
  return [hashUnder('current'), hashUnder('previous')]
}
