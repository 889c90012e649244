import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { IsIdnEmail } from 'typebox/format'

/**
 * An address in the one form that is stored and compared: trimmed, NFC, lower case, the domain by UTS 46. Undefined when it
 * is none (RFC 5321 section 4.5.3.1: at most 64 characters before the @ and 254 in all). Refused are quoted local parts and
 * those that begin an encoded word (RFC 2047), which nobody has and which confuse what reads mail: some readers decode `=?utf-8?q?a?=`
 * to another address. Refused too is what cannot be seen (spaces, zero-width characters, changes of direction, control
 * characters, fillers, selectors): with it two addresses look the same.
 */
export function emailFrom(text: string): string | undefined {
  // A bound before the work: UTS 46 makes at most 18 characters of one, and no address has more.
  if (text.length > LONGEST * 4) return undefined
  const typed = text.trim().normalize('NFC')
  const at = typed.lastIndexOf('@')
  const domain = at === -1 ? undefined : domainFrom(typed.slice(at + 1))
  if (domain === undefined) return undefined
  const local = typed.slice(0, at).toLowerCase().normalize('NFC')
  const email = `${local}@${domain.shown}`
  const isUsable =
    Math.max(email.length, `${local}@${domain.ascii}`.length) <= LONGEST &&
    local.length <= 64 &&
    !local.includes('=?') &&
    !/["\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u.test(email) &&
    // What is shown holds to IDNA 2008, and what goes to the mail server to the lengths of DNS.
    IsIdnEmail(email) &&
    IsIdnEmail(`${local}@${domain.ascii}`)
  return isUsable ? email : undefined
}

const LONGEST = 254

type Domain = { readonly shown: string; readonly ascii: string }

/**
 * A domain has one form however it is typed: in capitals, wide letters, punycode or with another dot (UTS 46, not
 * transitional). Node takes the text for a URL's host, so whatever means more than letters there is refused before: `%41`,
 * `host/path`, `0x7f.1`.
 */
function domainFrom(typed: string): Domain | undefined {
  if (/[\0-,/:-@[-`{-\x7f]/.test(typed)) return undefined
  const ascii = domainToASCII(typed)
  if (ascii === '' || isIP(ascii) !== 0) return undefined
  const shown = domainToUnicode(ascii)
  // A form of its own: what it is shown as means the same domain again.
  return domainToASCII(shown) === ascii ? { shown, ascii } : undefined
}
