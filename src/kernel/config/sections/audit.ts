import { duration, section } from '../setting.ts'

export const audit = section('The audit trail.', {
  // Longer than a year, so that a yearly review sees all of it. The database's function keeps the last 30 days in any case.
  keep: duration('Time that an event is kept. Its address and user agent are cleared after 90 days.', [
    '400d',
    '30d',
    '3650d',
  ]),
})
