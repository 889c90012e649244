/** Characters of a name, as code points. */
export const NAME_MAX = 100

/** Completes "a name is …". */
export const NAME_RULE = `one line of at most ${NAME_MAX} characters, without control, bidirectional or invisible ones`

/**
 * A name in the form that is stored: trimmed, NFC. Undefined when the text is not a name. Names are shown in lists, mails and
 * terminals, so they have no line breaks, terminal sequences, bidirectional (CVE-2021-42574) or invisible characters.
 */
export function nameFrom(text: string): string | undefined {
  // A bound before the work. NFC triples a text at most.
  if (text.length > 8 * NAME_MAX) return undefined
  const name = text.trim().normalize('NFC')
  return [...name].length <= NAME_MAX && !INVISIBLE.test(name.replace(JOINED, '')) ? name : undefined
}

/** Control, format, private-use and line-breaking characters, fillers, and the blank of Braille. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

/** Joiners within words (Persian, Hindi) and emoji, and variation selectors of emoji: they have a visible effect. */
const JOINED = /(?<=[\p{L}\p{M}\p{S}])[\u200c\u200d](?=[\p{L}\p{S}])|(?<=\p{Emoji})[\ufe0e\ufe0f]\u200d?/gu
