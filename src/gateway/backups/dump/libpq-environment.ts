import { existsSync } from 'node:fs'
import { splitOptions } from '#kernel/db/session-settings.ts'

/** Where certificates of authorities are on most systems; libpq 16 and newer know the word `system`. */
const AUTHORITIES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/cert.pem',
]

/**
 * The address of a client as variables of libpq, with the same rules for TLS as the service's own connections: a certificate is verified with
 * `require` and `prefer` too, unless the URL asks for libpq's rules.
 */
export function libpqEnvironment(url: string, major: number): Readonly<Record<string, string>> {
  const { rest, options } = splitOptions(url)
  const parsed = new URL(rest)
  const decoded = (text: string) => decodeURIComponent(text)
  return {
    PGHOST: decoded(parsed.searchParams.get('host') ?? parsed.hostname).replace(/^\[(.*)\]$/, '$1'),
    PGPORT: parsed.port || '5432',
    PGUSER: decoded(parsed.username),
    PGPASSWORD: decoded(parsed.password),
    PGDATABASE: decoded(parsed.pathname.slice(1)),
    PGAPPNAME: 'gatehouse backup',
    PGCONNECT_TIMEOUT: '10',
    ...(options !== undefined && { PGOPTIONS: options }),
    // Files of the service's user have no effect.
    PGPASSFILE: '/dev/null',
    PGSERVICEFILE: '/dev/null',
    ...tlsOf(parsed.searchParams, major),
  }
}

function tlsOf(parameters: URLSearchParams, major: number): Readonly<Record<string, string>> {
  const mode =
    parameters.get('sslmode') ?? (/^(true|1)$/.test(parameters.get('ssl') ?? '') ? 'require' : 'disable')
  if (mode === 'disable' || mode === 'allow') return { PGSSLMODE: mode }
  if (mode === 'no-verify') return { PGSSLMODE: 'require' }
  const file = parameters.get('sslrootcert')
  if (parameters.get('uselibpqcompat') === 'true')
    return { PGSSLMODE: mode, ...(file !== null && { PGSSLROOTCERT: file }) }
  const system = major >= 16 ? 'system' : AUTHORITIES.find((one) => existsSync(one))
  const authorities = file ?? system
  return { PGSSLMODE: 'verify-full', ...(authorities !== undefined && { PGSSLROOTCERT: authorities }) }
}

/** A database's name for `--dbname`, which would read `=` in a plain name as a keyword list. */
export const databaseArgument = (name: string): string =>
  `--dbname=dbname='${name.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
