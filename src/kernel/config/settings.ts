import type { Static } from 'typebox'
import type { ConfigFacts } from './defaults.ts'
import { audit } from './sections/audit.ts'
import { auth } from './sections/auth.ts'
import { backups } from './sections/backups.ts'
import { cluster } from './sections/cluster.ts'
import { consoleSettings } from './sections/console.ts'
import { clients, database } from './sections/database.ts'
import { docs } from './sections/docs.ts'
import { gateway } from './sections/gateway.ts'
import { log } from './sections/log.ts'
import { mail } from './sections/mail.ts'
import { metrics } from './sections/metrics.ts'
import { rateLimits } from './sections/rate-limits.ts'
import { limits, outbound, server } from './sections/server.ts'
import { session } from './sections/session.ts'
import { section } from './setting.ts'

/** Every setting. Validation, defaults, names in the environment, documentation and masking are derived from it. */
export const settings = section('Settings', {
  server,
  database,
  clients,
  session,
  auth,
  gateway,
  mail,
  backups,
  limits,
  rate_limits: rateLimits,
  outbound,
  log,
  metrics,
  docs,
  console: consoleSettings,
  audit,
  cluster,
})

/** Durations in milliseconds, sizes in bytes. */
export type Config = DeepReadonly<Static<typeof settings> & ConfigFacts>

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T
