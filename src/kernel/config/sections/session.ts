import { textForm } from '../forms.ts'
import { choice, duration, flag, integer, section, text } from '../setting.ts'

/** RFC 6265 section 4.1.1, where a name is a token of RFC 2616. */
const cookieNameForm = textForm(
  'cookie name',
  /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/,
  "1 to 128 letters, digits or !#$%&'*+-.^_`|~",
)

export const session = section('Sessions and their cookie.', {
  expires_in: duration('Life of a session, counted again from each extension.', ['7d', '1s', '3650d']),
  update_age: duration('A session in use is extended once this has passed since the last time.', [
    '1d',
    '0s',
    '3650d',
  ]),
  max_age: duration('The longest life of a session, however often it is extended; 0: no such bound.', [
    '90d',
    '0s',
    '3650d',
  ]),
  fresh_age: duration('How long after its sign-in a session may do what needs a fresh one.', [
    '1d',
    '1s',
    '3650d',
  ]),
  max_per_user: integer('Sessions of one user; the oldest ends.', { min: 1, max: 10_000 }, { default: 100 }),
  cookie_name: text('Name of the session cookie.', { default: 'service-auth.session-token' }, cookieNameForm),
  cookie_secure: flag('Whether browsers send the cookies over https only (and to localhost).', {
    default: true,
  }),
  cookie_http_only: flag('Whether scripts in a page cannot read the session cookie.', { default: true }),
  cookie_same_site: choice(
    'Whether other sites may send the cookie along; None needs cookie_secure.',
    ['Lax', 'Strict', 'None'],
    { default: 'Lax' },
  ),
})
