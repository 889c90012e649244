/**
 * Control characters (terminal commands among them), changes of direction (CVE-2021-42574) and invisible characters. Not line breaks and
 * tabs, and not joiners: names may contain those (identity/names.ts), and they only change how letters look.
 */
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Makes an untrusted text safe for a terminal: such characters are written as `\u001b`, which in JSON means the character itself. */
export const escapeInvisible = (text: string): string =>
  text.replace(UNSEEN, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** The same for a table cell, which is one line. */
export const escapeInvisibleInLine = (text: string): string =>
  escapeInvisible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
