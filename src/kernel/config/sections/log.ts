import { Type } from 'typebox'
import { choice, flag, section, text } from '../setting.ts'

export const log = section('The log, on standard output.', {
  level: choice(
    'Least severity that is written.',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    {
      default: 'info',
    },
  ),
  format: Type.Optional(
    choice('One JSON record a line, or for reading.', ['json', 'pretty'], {
      absent: 'json; pretty on a terminal',
    }),
  ),
  requests: Type.Optional(
    choice(
      'Which requests are logged: all, those that failed or were slow, none.',
      ['all', 'problems', 'none'],
      {
        absent: 'problems; all on a terminal',
      },
    ),
  ),
})

export const docs = section('The API reference.', {
  enabled: flag('Whether /docs and /openapi.json are served.', {
    derived: { says: 'false with NODE_ENV=production, else true', from: ({ production }) => !production },
  }),
})

export const metrics = section('Prometheus metrics at /metrics.', {
  enabled: flag('Whether they are served.', { default: true }),
  token: Type.Optional(
    text('Bearer token for /metrics, beside the admin key.', { absent: 'the admin key only', secret: 'all' }),
  ),
})
