import type { IdClaim, RowLevelSecurity, SqlRole } from '#databases/drivers/driver.ts'
import type { Config } from '#kernel/config/config.ts'
import { CLIENT_LIMITS } from '#kernel/config/sections/database.ts'
import { maskedUrl } from '#kernel/config/show.ts'
import { type Client, type ClientContext, driverFor } from './client.ts'

export type ConfiguredOptions = ClientContext & {
  /** Built-in clients, which exist without configuration: name → URL. */
  readonly builtIn: Readonly<Record<string, string>>
  /** The roles created for callers of the built-in client. */
  readonly callerRoles?: RowLevelSecurity | undefined
  /** URL of the built-in logging client, with a role that may only read. */
  readonly loggingReaderUrl: string | undefined
}

/** A client that only the operator can change. It does not change while the process runs. */
export type ConfiguredClient = Client & {
  readonly source: 'config'
  readonly maskedUrl: string
  readonly maskedDirectUrl: string | null
  readonly description: string | null
  /** The same client with row-level security, if it is undecided. Opens a driver. */
  readonly protect?: () => ConfiguredClient
}

/** Clients of the configuration, and built-in ones that it does not override, by name. */
export function createConfiguredClients(options: ConfiguredOptions): ReadonlyMap<string, ConfiguredClient> {
  const { config, builtIn, callerRoles, loggingReaderUrl } = options
  const { logging_client: loggingName } = config.gateway
  const given = [
    ...(loggingReaderUrl === undefined ? [] : [builtInClient(loggingName, loggingReaderUrl)]),
    ...Object.entries(builtIn).map(([name, url]) => ({
      ...builtInClient(name, url),
      // An entry without a URL has settings for the built-in client.
      ...config.clients[name],
      url,
    })),
    // Last, so that the operator's configuration overrides built-in clients.
    ...Object.entries(config.clients).flatMap(([name, { url, ...settings }]) =>
      url === undefined ? [] : [{ name, ...settings, url }],
    ),
  ]
  const chosen = new Map(given.map((settings) => [settings.name, settings]))
  const open = (
    settings: (typeof given)[number],
    rowLevelSecurity: RowLevelSecurity | undefined,
  ): ConfiguredClient => {
    const isLogging = settings.name === loggingName
    const driver = driverFor(options, {
      ...settings,
      readOnly: isLogging,
      rowLevelSecurity,
      sqlRole: sqlRoleOf(settings.sql_role),
    })
    return {
      name: settings.name,
      driver,
      source: 'config',
      isFrozen: false,
      rowLevelSecurity,
      isCached: !isLogging,
      maskedUrl: maskedUrl(settings.url),
      maskedDirectUrl: settings.direct_url === undefined ? null : maskedUrl(settings.direct_url),
      description: settings.description ?? null,
    }
  }
  return new Map(
    [...chosen.values()].map((settings) => {
      const { name, row_level_security: security } = settings
      const made = settings.url === builtIn[name] ? callerRoles : undefined
      const client = open(settings, security?.enabled === true ? rolesOf(security, made) : undefined)
      const isUndecided = made !== undefined && security?.enabled === undefined
      return [
        name,
        isUndecided
          ? { ...client, isUndecided, protect: () => open(settings, rolesOf(security, made)) }
          : client,
      ]
    }),
  )
}

const builtInClient = (name: string, url: string) => ({
  name,
  driver: 'postgresql' as const,
  url,
  direct_url: undefined,
  description: undefined,
  row_level_security: undefined,
  sql_role: undefined,
  ...CLIENT_LIMITS,
})

type Settings = Config['clients'][string]['row_level_security']

const USUAL: RowLevelSecurity = { anonymousRole: 'anon', signedInRole: 'authenticated' }

function rolesOf(settings: Settings | undefined, made: RowLevelSecurity = USUAL): RowLevelSecurity {
  if (settings === undefined) return made
  const { issuers, own_sessions: takesSessions } = settings
  return {
    anonymousRole: settings.anonymous_role ?? made.anonymousRole,
    signedInRole: settings.signed_in_role ?? made.signedInRole,
    issuers,
    refusesSessions: !takesSessions,
    setsJwtClaims: settings.request_jwt_claims,
    textClaims: textClaimsOf(settings),
  }
}

/** Without prefixes and sessions, an issuer's ids may be UUIDs. Beside sessions a UUID is always one of this service. */
function textClaimsOf({ issuers, own_sessions: takesSessions }: Settings): readonly IdClaim[] {
  const named = issuers.filter(({ claims_map }) => claims_map.organization_id !== undefined)
  const areTexts = {
    user_id: issuers.some(({ subject_prefix }) => takesSessions || subject_prefix !== undefined),
    organization_id: named.some(
      ({ organization_prefix }) => takesSessions || organization_prefix !== undefined,
    ),
  }
  return (['user_id', 'organization_id'] as const).filter((claim) => areTexts[claim])
}

/** Both are set or neither (kernel/config/rules.ts). */
const sqlRoleOf = (settings: Config['clients'][string]['sql_role'] | undefined): SqlRole | undefined =>
  settings?.name === undefined || settings.password === undefined
    ? undefined
    : { name: settings.name, password: settings.password }
