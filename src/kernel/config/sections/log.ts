import { Type } from 'typebox'
import { choice, flag, section, text } from '../setting.ts'

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

export const docs = section('The API reference.', {
  enabled: flag('Whether /docs and /openapi.json are served.', {
    derived: { says: 'false with NODE_ENV=production, else true', from: ({ production }) => !production },
  }),
})

export const metrics = section('Prometheus metrics at /metrics.', {
  enabled: flag('Whether /metrics is served.', { default: true }),
  token: Type.Optional(
    text('Bearer token for /metrics, in addition to the admin key.', {
      absent: 'the admin key only',
      secret: 'all',
    }),
  ),
})
