import { Type } from 'typebox'
import { flag, section, text } from '../setting.ts'

export const metrics = section('Prometheus metrics at /metrics.', {
  enabled: flag('Whether /metrics is served.', { default: true }),
  token: Type.Optional(
    text('Bearer token for /metrics, in addition to the admin key.', {
      absent: 'the admin key only',
      secret: 'all',
    }),
  ),
})
