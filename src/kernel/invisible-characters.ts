/**
 * Control characters (a terminal's commands among them), changes of direction (CVE-2021-42574) and what cannot be seen. Line breaks and
 * tabs are left. Joiners are left out of this too: names may have them (identity/names.ts), and they change how letters look only.
 */
const UNSEEN = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** A text from elsewhere, fit for a terminal: such characters as `\u001b`, which in JSON means the same as the character. */
export const escapeInvisible = (text: string): string =>
  text.replace(UNSEEN, (found) =>
    found
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** The same for a cell of a table, which is one line. */
export const escapeInvisibleInLine = (text: string): string =>
  escapeInvisible(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
