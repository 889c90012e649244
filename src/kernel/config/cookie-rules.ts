import {
  CONSOLE_COOKIE,
  COOKIE_PREFIX,
  MULTI_SESSION,
  SECURE_CONSOLE_COOKIE,
  SIDE_COOKIES,
} from '../http/header-names.ts'
import type { Rule } from './rule.ts'
import type { Config } from './settings.ts'

const OURS = SIDE_COOKIES.flatMap((name) => [`${COOKIE_PREFIX}.${name}`, `${CONSOLE_COOKIE}.${name}`])

/** Rules about the names of cookies. One that two cookies have would be read as the other one, or overwrite it. */
export const cookieRules = ({ session, auth: { last_login_method } }: Config): Rule[] => {
  const others = 'auth.last_login_method.cookie_name'
  return [
    ...[
      { at: 'session.cookie_name', name: session.cookie_name },
      { at: others, name: last_login_method.cookie_name },
    ].flatMap(({ at, name }) => [
      {
        settings: [at, 'session.cookie_secure'],
        broken: () => /^__(Secure|Host)-/i.test(name) && !session.cookie_secure,
        says: 'browsers refuse this prefix without session.cookie_secure: true',
      },
      {
        settings: [at],
        broken: () => name === CONSOLE_COOKIE || name === SECURE_CONSOLE_COOKIE,
        says: 'is the cookie of requests with x-service-session: 1; choose another name',
      },
      {
        settings: [at],
        broken: () => OURS.includes(name),
        says: 'is the name of another cookie of the service; choose another name',
      },
    ]),
    {
      settings: [others, 'session.cookie_name'],
      broken: () => last_login_method.cookie_name === session.cookie_name,
      says: 'is the session cookie (session.cookie_name); choose another name',
    },
    {
      settings: [others, 'session.cookie_name'],
      broken: () => last_login_method.cookie_name.startsWith(`${session.cookie_name}${MULTI_SESSION}`),
      says: 'begins as the cookies of auth.multi_session do; choose another name',
    },
  ]
}
