import { duration, flag, integer, section } from '../setting.ts'

const signUp = flag('Whether an address without an account opens one by signing in so.', { default: true })

/** auth.md 4. Link and code are in one mail where both are enabled. */
export const magicLink = section('Sign-in by a link in a mail.', {
  enabled: flag('Whether its endpoints exist.', { default: false }),
  sign_up: signUp,
  expires_in: duration('Lifetime of the link.', ['10m', '5m', '1d']),
})

export const emailOtp = section(
  'Codes in mails, of six digits and for five minutes: to sign in, to verify and change an address, to reset a password.',
  {
    enabled: flag('Whether its endpoints exist, and mails with such a link have a code too.', {
      default: false,
    }),
    sign_up: signUp,
    max_wrong_codes: integer(
      'Wrong codes within a day for the codes of one address: of all strangers together, and of each known device and session. Beyond it only links of mails work.',
      { min: 1, max: 10_000 },
      { default: 30 },
    ),
  },
)
