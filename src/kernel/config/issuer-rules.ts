import type { Rule } from './rule.ts'
import type { Config } from './settings.ts'

type Security = Config['clients'][string]['row_level_security']
type Issuer = Security['issuers'][number]

export const issuerRules = ({ clients, server, outbound }: Config): Rule[] =>
  Object.entries(clients).flatMap(([name, { row_level_security: security }]) => {
    const at = `clients.${name}.row_level_security`
    return [
      {
        settings: [`${at}.issuers`, `${at}.enabled`],
        broken: () => security.issuers.length > 0 && !security.enabled,
        says: `needs ${at}.enabled: true`,
      },
      ...security.issuers.flatMap((issuer, index) => [
        ...ownRules(issuer, `${at}.issuers[${index}]`, { server, outbound }),
        ...besideOthers(security, index, `${at}.issuers[${index}]`),
      ]),
    ]
  })

/** Rules about one issuer. */
function ownRules(
  { issuer, jwks_url, audience, authorized_parties, algorithms }: Issuer,
  at: string,
  { server, outbound }: Pick<Config, 'server' | 'outbound'>,
): Rule[] {
  const isPlain = (url: string | undefined) => url?.startsWith('http:') === true && !outbound.allow_http
  return [
    {
      settings: [`${at}.issuer`, 'outbound.allow_http'],
      broken: () => isPlain(issuer),
      says: 'needs https, or outbound.allow_http: true',
    },
    {
      settings: [`${at}.jwks_url`, 'outbound.allow_http'],
      broken: () => isPlain(jwks_url),
      says: 'needs https, or outbound.allow_http: true',
    },
    {
      settings: [`${at}.issuer`, 'server.public_url'],
      broken: () => server.public_url !== undefined && issuer === server.public_url,
      says: 'is this service itself, whose sessions need no issuer',
    },
    {
      settings: [`${at}.algorithms`],
      broken: () => algorithms.length === 0,
      says: 'needs at least one algorithm, or no line for the usual ones',
    },
    {
      settings: [`${at}.audience`, `${at}.authorized_parties`, at],
      broken: () => audience.length === 0 && authorized_parties.length === 0,
      says: 'or authorized_parties is required: otherwise tokens that the issuer has made for other services are accepted',
    },
  ]
}

/** No issuer may name a user or an organization of another one. */
function besideOthers({ issuers }: Security, index: number, at: string): Rule[] {
  const issuer = issuers[index]
  const others = issuers.filter((_, other) => other !== index)
  const withOrganizations = others.filter(namesOrganizations)
  return [
    {
      settings: [`${at}.issuer`],
      broken: () => issuers.slice(0, index).some((other) => other.issuer === issuer?.issuer),
      says: 'is given twice for this client',
    },
    {
      settings: [`${at}.subject_prefix`, at],
      broken: () => others.length > 0 && isUnclear(issuer?.subject_prefix, others, 'subject_prefix'),
      says: `is required beside another issuer, and ${DISTINCT}`,
    },
    {
      settings: [`${at}.organization_prefix`, at],
      broken: () =>
        issuer !== undefined &&
        namesOrganizations(issuer) &&
        withOrganizations.length > 0 &&
        isUnclear(issuer.organization_prefix, withOrganizations, 'organization_prefix'),
      says: `is required beside another issuer of organizations, and ${DISTINCT}`,
    },
  ]
}

const DISTINCT = 'no prefix may begin with another one: otherwise one issuer could name what is of the other'

const namesOrganizations = ({ claims_map }: Issuer): boolean => claims_map.organization_id !== undefined

function isUnclear(
  own: string | undefined,
  others: readonly Issuer[],
  which: 'subject_prefix' | 'organization_prefix',
): boolean {
  if (own === undefined) return true
  return others.some(({ [which]: other }) => other?.startsWith(own) === true)
}
