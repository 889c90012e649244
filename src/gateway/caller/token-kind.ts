import type { RowLevelSecurity } from '#databases/drivers/driver.ts'

export type TokenKind = 'session' | 'jwt'

/** The form of a token that is no API key. It proves nothing. */
export const tokenKind = (token: string, { issuers = [] }: RowLevelSecurity): TokenKind =>
  issuers.length > 0 && isJwt(token) ? 'jwt' : 'session'

/** Header, payload and signature (RFC 7515, section 3.1). The signature of an unsecured token is empty. */
function isJwt(text: string): boolean {
  const [header = '', payload = '', signature, more] = text.split('.', 4)
  const isWhole = header !== '' && payload !== '' && signature !== undefined && more === undefined
  return isWhole && /^[\w.-]+$/.test(text)
}
