import { duration, flag, section } from '../setting.ts'

export const anonymous = section(
  'Users without an address, who are added by one request and may get an address or a way in later.',
  {
    enabled: flag('Whether its endpoints exist.', { default: false }),
    prune_after: duration('Age at which an anonymous user without a session is deleted.', [
      '30d',
      '1d',
      '3650d',
    ]),
  },
)
