import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { CONSOLE_COOKIE, HEADER } from './header-names.ts'

type Asking = Pick<FastifyRequest, 'headers'>

/** Whether a session is to act by the rights of its roles, in place of a key. A console of operators sends this with every request. */
export const asksToOperate = ({ headers }: Asking): boolean => headers[HEADER.serviceSession] === '1'

/** The cookie that a request reads its session from, and that its answer sets: a console has its own, beside that of the application. */
export const sessionCookieName = ({ session }: Pick<Config, 'session'>, request: Asking): string =>
  asksToOperate(request) ? CONSOLE_COOKIE : session.cookie_name

/** Treats the request as one of the console, or not. A browser that follows a redirect sends no header. */
export function continueInConsole({ headers }: Asking, isOfConsole: boolean): void {
  if (isOfConsole) headers[HEADER.serviceSession] = '1'
  else delete headers[HEADER.serviceSession]
}
