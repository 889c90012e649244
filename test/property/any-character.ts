import fc from 'fast-check'

/** Code points between the two ranges of characters: surrogates. */
const SURROGATES = { first: 0xd800, count: 0x800 }
const LAST = 0x10ffff

/**
 * The `unit` of strings of any characters, as fast-check's 'binary'. That one builds a table of all characters in each process, which takes
 * 1.4 s.
 */
export const ANY_CHARACTER: fc.Arbitrary<string> = fc
  .nat({ max: LAST - SURROGATES.count })
  .map((index) => String.fromCodePoint(index < SURROGATES.first ? index : index + SURROGATES.count), indexOf)

/** fast-check passes whatever may be a character, and expects an error for the rest. */
function indexOf(character: unknown): number {
  const point = typeof character === 'string' ? character.codePointAt(0) : undefined
  if (point === undefined || String.fromCodePoint(point) !== character) throw new Error('not one character')
  if (point < SURROGATES.first) return point
  if (point < SURROGATES.first + SURROGATES.count) throw new Error('a surrogate')
  return point - SURROGATES.count
}
