import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { IsIdnEmail } from 'typebox/format'
import { isPlaceholder } from './placeholders.ts'

/**
 * The form of an address that is stored and compared: trimmed, NFC, lower case, the domain by UTS 46. Undefined for any other text
 * (RFC 5321 section 4.5.3.1: at most 64 characters before the @ and 254 in all).
 *
 * Quoted local parts are refused, and so are encoded words (RFC 2047), which are not in use: some mail readers decode `=?utf-8?q?a?=` to
 * another address. Invisible characters (spaces, zero-width, bidirectional and control characters, fillers, selectors) are refused
 * because they make two addresses look the same. So is the placeholder of a user without an address.
 */
export function emailFrom(text: string): string | undefined {
  // A bound before the work. UTS 46 expands one character to 18 at most.
  if (text.length > MAX_LENGTH * 4) return undefined
  const typed = text.trim().normalize('NFC')
  const at = typed.lastIndexOf('@')
  const domain = at === -1 ? undefined : domainFrom(typed.slice(at + 1))
  if (domain === undefined) return undefined
  const local = typed.slice(0, at).toLowerCase().normalize('NFC')
  const email = `${local}@${domain.shown}`
  const isUsable =
    Math.max(email.length, `${local}@${domain.ascii}`.length) <= MAX_LENGTH &&
    local.length <= 64 &&
    !isPlaceholder(email) &&
    !local.includes('=?') &&
    !/["\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(email) &&
    // The displayed form has to conform to IDNA 2008, and the ASCII form to the lengths of DNS.
    IsIdnEmail(email) &&
    IsIdnEmail(`${local}@${domain.ascii}`)
  return isUsable ? email : undefined
}

const MAX_LENGTH = 254

type Domain = { readonly shown: string; readonly ascii: string }

/**
 * One form for all spellings of a domain: capitals, wide letters, punycode, other dots (UTS 46, not transitional). Node parses the
 * text as the host of a URL, so characters with a meaning there are refused before: `%41`, `host/path`, `0x7f.1`.
 */
function domainFrom(typed: string): Domain | undefined {
  if (/[\0-,/:-@[-`{-\x7f]/.test(typed)) return undefined
  const ascii = domainToASCII(typed)
  if (ascii === '' || isIP(ascii) !== 0) return undefined
  const shown = domainToUnicode(ascii)
  // The displayed form has to mean the same domain.
  return domainToASCII(shown) === ascii ? { shown, ascii } : undefined
}
