import { duration, flag, section } from '../setting.ts'

export const oneTimeToken = section(
  'One-time tokens, with which a session begins another one in a browser or app.',
  {
    enabled: flag('Whether the endpoints one-time-token/* exist.', { default: false }),
    expires_in: duration('Lifetime of a token.', ['3m', '1s', '1h']),
    set_session_cookie: flag(
      'Whether one-time-token/verify sets the session cookie; the token of the session is in the answer anyway.',
      {
        default: true,
      },
    ),
  },
)
