import type { Static } from 'typebox'
import { complete } from './complete.ts'
import { auth } from './sections/auth.ts'
import { clients, database } from './sections/database.ts'
import { gateway } from './sections/gateway.ts'
import { log, metrics } from './sections/log.ts'
import { mail } from './sections/mail.ts'
import { rateLimits } from './sections/rate-limits.ts'
import { limits, outbound, server } from './sections/server.ts'
import { session } from './sections/session.ts'
import { section } from './setting.ts'

/** Every setting there is. Validation, defaults, environment names, documentation and masking are read from it. */
export const settings = section('Settings', {
  server,
  database,
  clients,
  session,
  auth,
  gateway,
  mail,
  limits,
  rate_limits: rateLimits,
  outbound,
  log,
  metrics,
})

/** Durations in milliseconds, sizes in bytes. */
export type Config = DeepReadonly<Static<typeof settings> & { production: boolean }>

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T
type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> }
    : T

/** For tests: what holds without file and environment, but for the overrides. */
export function defaultConfig(overrides: DeepPartial<Config> = {}): Config {
  const { production = false, ...given } = overrides
  return complete(settings, given, production) as Config
}
