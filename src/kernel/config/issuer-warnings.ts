import type { Config } from './settings.ts'

type Client = Config['clients'][string]
type Issuer = Client['row_level_security']['issuers'][number]

/** Policies see claims and no client, so on one database the names of all its clients are one space. */
export const issuerWarnings = ({ clients }: Config): readonly string[] =>
  Object.entries(clients).flatMap(([name, client]) =>
    client.row_level_security.issuers.flatMap((issuer, index) =>
      Object.entries(clients)
        .filter(([other, { row_level_security: security }]) => other !== name && security.enabled)
        .filter(([, other]) => databaseOf(other) !== undefined && databaseOf(other) === databaseOf(client))
        .flatMap(([other, { row_level_security: security }]) => {
          const beside = { security, mayBeUuids: !client.row_level_security.own_sessions }
          return NAMES.filter((kind) => kind.isUnclear(issuer, beside)).map(
            ({ of, prefix }) =>
              `clients.${name}.row_level_security.issuers[${index}] can name ${of} of the client ${other}, which has the same database: set ${prefix}.`,
          )
        }),
    ),
  )

/** Without the user, who may be another one. The built-in client has none. */
function databaseOf({ url }: Client): string | undefined {
  const { host, pathname } = URL.parse(url ?? '') ?? {}
  return host === undefined ? undefined : `${host}${pathname}`
}

type Beside = {
  readonly security: Client['row_level_security']
  /** Ids of this service are UUIDs. */
  readonly mayBeUuids: boolean
}

const NAMES = [
  nameOf('users', 'subject_prefix', () => true),
  nameOf(
    'organizations',
    'organization_prefix',
    ({ claims_map }) => claims_map.organization_id !== undefined,
  ),
]

function nameOf(
  of: string,
  prefix: 'subject_prefix' | 'organization_prefix',
  names: (issuer: Issuer) => boolean,
) {
  const isUnclear = (issuer: Issuer, { security, mayBeUuids }: Beside): boolean => {
    const own = issuer[prefix]
    if (!names(issuer)) return false
    if (own === undefined && mayBeUuids && security.own_sessions) return true
    const others = security.issuers.filter((other) => other.issuer !== issuer.issuer && names(other))
    return others.some(({ [prefix]: other }) => own === undefined || other?.startsWith(own) === true)
  }
  return { of, prefix, isUnclear }
}
