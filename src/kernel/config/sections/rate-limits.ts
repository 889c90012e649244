import { duration, flag, integer, section } from '../setting.ts'

const rule = (description: string, requests: number, window: string) =>
  section(`${description}.`, {
    requests: integer(
      `${description}: number allowed within the window.`,
      { min: 1, max: 1_000_000 },
      { default: requests },
    ),
    window: duration(`${description}: the window.`, [window, '1s', '7d']),
  })

/** auth.md 11. A rule that is only partly given keeps the rest of its default. */
const rules = section('The rate limits.', {
  sign_in: rule('Sign-in, per address', 10, '1m'),
  sign_in_account: rule('Failed sign-ins, per account', 10, '15m'),
  sign_up: rule('Sign-up, per address', 5, '1m'),
  anonymous: rule('Anonymous sign-ins, per address', 30, '1h'),
  mail: rule('Requests that send mail, per address', 3, '1m'),
  mail_recipient: rule('Mails, per recipient and kind of sender; three times as many in all', 10, '1h'),
  two_factor: rule('Second factors, per address', 5, '1m'),
  device_code: rule('Devices that ask for a code, per address', 20, '1m'),
  user_code: rule('Codes of devices that users enter, per address and per user', 10, '1m'),
  impersonation: rule('Impersonations, per admin', 30, '10m'),
  admin_key: rule('Wrong admin keys, per address', 10, '1m'),
  webhook_test: rule('Test deliveries, per webhook', 10, '1m'),
  default: rule('Everything else, per address', 100, '10s'),
})

export const rateLimits = section('Rate limits.', {
  enabled: flag('Whether rate limits apply.', {
    derived: { says: 'true with NODE_ENV=production, else false', from: ({ production }) => production },
  }),
  rules,
})
