import { IsIdnEmail } from 'typebox/format'

/**
 * An address in the one form that is stored and compared: trimmed, NFC, lower case. Undefined when it is none
 * (RFC 5321 section 4.5.3.1: at most 64 characters before the @ and 254 in all). Refused are quoted local parts, which
 * nobody has and which confuse what reads mail, and what cannot be seen (spaces, zero-width characters, changes of
 * direction, control characters): with it two addresses look the same.
 */
export function emailFrom(text: string): string | undefined {
  const email = text.trim().normalize('NFC').toLowerCase()
  const isUsable =
    email.length <= 254 && email.lastIndexOf('@') <= 64 && !/["\p{C}\p{Z}]/u.test(email) && IsIdnEmail(email)
  return isUsable ? email : undefined
}
