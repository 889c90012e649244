import { cookieNameForm } from '../cookie-names.ts'
import { duration, flag, section, text } from '../setting.ts'

export const lastLoginMethod = section(
  'The way in that a browser has used last, for the sign-in page of an application.',
  {
    enabled: flag('Whether a sign-in sets the cookie, which pages can read.', { default: false }),
    cookie_name: text(
      'Name of the cookie.',
      { default: 'better-auth.last_used_login_method' },
      cookieNameForm,
    ),
    max_age: duration('Lifetime of the cookie.', ['30d', '1s', '3650d']),
  },
)
