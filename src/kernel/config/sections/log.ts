import { Type } from 'typebox'
import { choice, section } from '../setting.ts'

export const log = section('The log, on standard output.', {
  level: choice(
    'Lowest severity that is logged.',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    {
      default: 'info',
    },
  ),
  format: Type.Optional(
    choice('One JSON record per line, or a format for terminals.', ['json', 'pretty'], {
      absent: 'json; pretty on a terminal',
    }),
  ),
  requests: Type.Optional(
    choice(
      'Requests that are logged: all, those that failed or were slow, or none.',
      ['all', 'problems', 'none'],
      {
        absent: 'problems; all on a terminal',
      },
    ),
  ),
})
