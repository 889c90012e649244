import { decodeJwt } from 'jose'
import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** `own jwt`: of a session here. `jwt`: of an issuer that the client trusts. */
export type TokenKind = 'session' | 'own jwt' | 'jwt'

/** The form of a token that is no API key, and the issuer that it names. It proves nothing. */
export function tokenKind(
  { publicUrl }: Pick<Kernel, 'publicUrl'>,
  token: string,
  { issuers = [] }: RowLevelSecurity,
): TokenKind {
  if (!isJwt(token)) return 'session'
  return issuers.length === 0 || issuerIn(token) === publicUrl() ? 'own jwt' : 'jwt'
}

/** Header, payload and signature (RFC 7515, section 3.1). The signature of an unsecured token is empty. */
function isJwt(text: string): boolean {
  const [header = '', payload = '', signature, more] = text.split('.', 4)
  const isWhole = header !== '' && payload !== '' && signature !== undefined && more === undefined
  return isWhole && /^[\w.-]+$/.test(text)
}

function issuerIn(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}
