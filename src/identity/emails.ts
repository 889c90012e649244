import { IsIdnEmail } from 'typebox/format'

/**
 * An address in the one form that is stored and compared: trimmed, NFC, lower case. Undefined when it is none
 * (RFC 5321 section 4.5.3.1: at most 64 characters before the @ and 254 in all). Quoted local parts are refused: nobody
 * has one, and they confuse what reads mail.
 */
export function emailFrom(text: string): string | undefined {
  const email = text.trim().normalize('NFC').toLowerCase()
  const isUsable =
    email.length <= 254 && email.lastIndexOf('@') <= 64 && !email.includes('"') && IsIdnEmail(email)
  return isUsable ? email : undefined
}
