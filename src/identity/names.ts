/** Characters of a name, as code points. */
export const NAME_MAX = 100

/** Completes "a name is …". */
export const NAME_RULE = `one line of at most ${NAME_MAX} characters, without control, bidirectional or invisible ones`

/**
 * A name as it is stored: trimmed, NFC. Undefined when it is none. Names are shown in lists, mails and terminals, so they
 * carry no line break, no terminal sequence, no change of direction (CVE-2021-42574) and nothing that cannot be seen.
 */
export function nameFrom(text: string): string | undefined {
  // A bound before the work: NFC at most triples a text.
  if (text.length > 8 * NAME_MAX) return undefined
  const name = text.trim().normalize('NFC')
  return [...name].length <= NAME_MAX && !UNSEEN.test(name.replace(JOINED, '')) ? name : undefined
}

/** Control, format, private-use and line-breaking characters, fillers, and the blank of Braille. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

/** Joiners inside of words (Persian, Hindi) and emoji, and the selector of an emoji's look: they change what is seen. */
const JOINED = /(?<=[\p{L}\p{M}\p{S}])[\u200c\u200d](?=[\p{L}\p{S}])|(?<=\p{Emoji})[\ufe0e\ufe0f]\u200d?/gu
