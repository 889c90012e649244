/** Code points. */
export const NAME_MAX = 100

/** Completes "a name is …". */
export const NAME_RULE = `one line of at most ${NAME_MAX} characters, without control, bidirectional or invisible ones`

/**
 * The name as it is stored: trimmed, in NFC. Undefined when the text breaks NAME_RULE. Names are shown in lists, mails and
 * terminals, so they have no line breaks, terminal sequences, bidirectional (CVE-2021-42574) or invisible characters.
 */
export function nameFrom(text: string): string | undefined {
  // Bounds the work of NFC, which at most triples a text. The factor 8 leaves room for what trim and NFC remove.
  if (text.length > 8 * NAME_MAX) return undefined
  const name = text.trim().normalize('NFC')
  return [...name].length <= NAME_MAX && !INVISIBLE.test(name.replace(VISIBLE_JOINERS, '')) ? name : undefined
}

/** Control, format, private-use and line-breaking characters, fillers, and the Braille blank (U+2800). */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

/**
 * Invisible characters that a name may contain, because they change how it looks: joiners within words (Persian, Hindi) and
 * emoji, and variation selectors of emoji.
 */
const VISIBLE_JOINERS =
  /(?<=[\p{L}\p{M}\p{S}])[\u200c\u200d](?=[\p{L}\p{S}])|(?<=\p{Emoji})[\ufe0e\ufe0f]\u200d?/gu
