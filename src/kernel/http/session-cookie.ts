import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { edge } from './failures.ts'
import { CONSOLE_COOKIE, HEADER, SECURE_CONSOLE_COOKIE } from './header-names.ts'

type Asking = Pick<FastifyRequest, 'headers'>

/** Whether a session is to act by the rights of its roles, in place of a key. A console of operators sends this with every request. */
export const asksToOperate = ({ headers }: Asking): boolean => headers[HEADER.serviceSession] === '1'

/** The cookie that a request reads its session from, and that its answer sets: a console has its own, beside that of the application. */
export const sessionCookieName = (config: Pick<Config, 'session' | 'server'>, request: Asking): string =>
  asksToOperate(request) ? consoleCookieName(config) : config.session.cookie_name

const consoleCookieName = ({ server }: Pick<Config, 'server'>): string =>
  server.public_url?.startsWith('https:') === true ? SECURE_CONSOLE_COOKIE : CONSOLE_COOKIE

/**
 * Throws when the request expects the session of another user. A page cannot read its cookie, which other tabs, and over http also pages of
 * other ports, may have replaced: it would show and do things as a user whom it does not know.
 */
export function expectUser({ headers }: Asking, userId: string): void {
  const expected = headers[HEADER.expectedUser]
  if (expected !== undefined && expected !== userId) throw edge('another_user')
}

/** Treats the request as one of the console, or not. A browser that follows a redirect sends no header. */
export function continueInConsole({ headers }: Asking, isOfConsole: boolean): void {
  if (isOfConsole) headers[HEADER.serviceSession] = '1'
  else delete headers[HEADER.serviceSession]
}
