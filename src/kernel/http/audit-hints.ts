import type { IncomingHttpHeaders } from 'node:http'
import { HEADER } from './header-names.ts'

const HINTS = {
  user_hint: HEADER.userHint,
  organization_hint: HEADER.organizationHint,
  company_hint: HEADER.companyHint,
} as const

/** The users, organizations and companies that callers name for the log (gateway.md 1). Nothing is decided by them. */
export const auditHints = (headers: IncomingHttpHeaders): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(HINTS).flatMap(([name, header]) => {
      const { [header]: text } = headers
      return typeof text === 'string' && isSane(text) ? [[name, text]] : []
    }),
  )

/** Visible ASCII: an id or an address. */
const isSane = (text: string): boolean => /^[!-~]{1,128}$/.test(text)
