import { Type } from 'typebox'
import { textForm } from '../forms.ts'
import { choice, duration, flag, section, text } from '../setting.ts'

const audienceForm = textForm(
  'audience',
  /^[\x21-\x7e]{1,200}$/,
  'at most 200 visible ASCII characters without spaces, like https://api.example.com',
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
  },
)
