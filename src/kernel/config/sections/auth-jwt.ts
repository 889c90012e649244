import { Type } from 'typebox'
import { textForm } from '../forms.ts'
import { choice, duration, flag, named, section, text } from '../setting.ts'

const audienceForm = textForm(
  'audience',
  /^[\x21-\x7e]{1,200}$/,
  'at most 200 visible ASCII characters without spaces, like https://api.example.com',
)

const templateNameForm = textForm(
  'template name',
  /^[a-z][a-z0-9_-]{0,39}$/,
  'a name of at most 40 lower-case letters, digits, "-" and "_"',
)

/** Claims that say whose token it is, for whom, and until when. */
export const RESERVED_CLAIMS = [
  ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sid', 'azp', 'client_id', 'scope', 'cnf', 'act'],
  ...['amr', 'acr', 'auth_time', 'nonce', 'org', 'org_role', 'is_anonymous'],
]

const claimNameForm = textForm(
  'claim name',
  new RegExp(`^(?!(?:${RESERVED_CLAIMS.join('|')})$)[\\x21-\\x7e]{1,100}$`),
  `at most 100 visible ASCII characters without spaces, and none of ${RESERVED_CLAIMS.join(', ')}`,
)

/** JSON web tokens of sessions, for services that verify them by themselves. */
export const jwt = section(
  'JSON web tokens (JWT) of sessions, for services that verify them by themselves.',
  {
    enabled: flag('Whether there are tokens, and the keys that verify them are published.', {
      default: true,
    }),
    header: flag('Whether get-session answers with a token in the header `set-auth-jwt`.', {
      default: false,
    }),
    algorithm: choice(
      'Signature of tokens. Another one signs as soon as its key has been published for 25 hours.',
      ['ES256', 'EdDSA'],
      { default: 'ES256' },
    ),
    audience: Type.Optional(
      text('`aud` of tokens. The gateway accepts no other.', { absent: 'server.public_url' }, audienceForm),
    ),
    expires_in: duration('Lifetime of a token. It also ends with its session.', ['5m', '1m', '1d']),
    rotate_every: duration('Time for which a key signs.', ['90d', '2d', '3650d']),
    templates: named(
      'Tokens for other audiences, which the gateway does not accept: `/token?template=NAME`.',
      templateNameForm,
      section('A token for one audience.', {
        audience: text('`aud` of the token.', {}, audienceForm),
        expires_in: duration('Lifetime of the token. It also ends with its session.', ['5m', '1m', '1d']),
        claims: named(
          'Claims besides those of every token; `role` replaces the roles of the user.',
          claimNameForm,
          text('The value, a text.'),
        ),
      }),
    ),
  },
)
