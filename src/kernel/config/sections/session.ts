import { COOKIE_PREFIX } from '../../http/header-names.ts'
import { cookieNameForm } from '../cookie-names.ts'
import { choice, duration, flag, integer, section, text } from '../setting.ts'

export const session = section('Sessions and their cookie.', {
  expires_in: duration('Lifetime of a session; starts again with each extension.', ['7d', '1s', '3650d']),
  update_age: duration('A session in use is extended when this time has passed since its last extension.', [
    '1d',
    '0s',
    '3650d',
  ]),
  max_age: duration('Longest lifetime of a session, including extensions; 0: unlimited.', [
    '90d',
    '0s',
    '3650d',
  ]),
  fresh_age: duration(
    'Time after the last proof of a session during which it may add and remove ways of signing in.',
    ['1d', '1s', '3650d'],
  ),
  max_per_user: integer(
    'Largest number of sessions of one user, and of impersonations by one admin; beyond it the oldest ends.',
    { min: 1, max: 10_000 },
    { default: 100 },
  ),
  cookie_name: text(
    'Name of the session cookie.',
    { default: `${COOKIE_PREFIX}.session-token` },
    cookieNameForm,
  ),
  cookie_secure: flag('Whether browsers send the cookies only over https (and to localhost).', {
    default: true,
  }),
  cookie_http_only: flag('Whether the session cookie is hidden from scripts.', { default: true }),
  cookie_same_site: choice(
    'Whether requests from other sites carry the cookie; None needs cookie_secure.',
    ['Lax', 'Strict', 'None'],
    { default: 'Lax' },
  ),
})
