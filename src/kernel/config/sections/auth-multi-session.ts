import { flag, integer, section } from '../setting.ts'

export const multiSession = section('Sessions of several users in one browser.', {
  enabled: flag(
    'Whether a browser keeps the sessions of several users, and the endpoints multi-session/* exist. Sign-out then ends all of them.',
    { default: false },
  ),
  maximum_sessions: integer(
    'Largest number of sessions that a browser keeps; that of a further user replaces the session cookie only.',
    { min: 1, max: 20 },
    { default: 5 },
  ),
})
