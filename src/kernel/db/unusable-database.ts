import pg from 'pg'

/** A database that a setting names cannot be used. The message names the setting and gives advice. */
export class UnusableDatabase extends Error {
  override readonly name = 'UnusableDatabase'
}

/** Runs work on a database that the operator configured. Errors of the database or the network become messages that name the setting. */
export async function namedBy<T>(setting: string, url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw errorNaming(setting, url, error)
  }
}

/** The message for an error of `pg`, Node or the server; any other error is returned as it is. */
export function errorNaming(setting: string, url: string, thrown: unknown): unknown {
  const error = firstOf(thrown)
  if (!(error instanceof Error)) return thrown
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const facts = { ...factsOf(url, error.message), setting }
  const [, says] = REASONS.find(([pattern]) => pattern.test(`${code} ${error.message}`)) ?? []
  const reason = says?.(facts) ?? (error instanceof pg.DatabaseError ? error.message : undefined)
  return reason === undefined ? thrown : new UnusableDatabase(`${setting}: ${reason}`, { cause: thrown })
}

/** A host name with several addresses fails with one error for each. */
const firstOf = (thrown: unknown): unknown => (thrown instanceof AggregateError ? thrown.errors[0] : thrown)

type Facts = {
  /** As in the configuration. */
  readonly setting: string
  readonly host: string
  /** Host and port, or the folder of a socket. */
  readonly server: string
  readonly role: string
  readonly database: string
  /** The server's own message. */
  readonly message: string
}

function factsOf(url: string, message: string): Omit<Facts, 'setting'> {
  const { hostname, port, username, pathname, searchParams } = new URL(url)
  const host = decodeURIComponent(hostname) || searchParams.get('host') || 'localhost'
  const role = decodeURIComponent(username) || 'of the system user'
  return {
    host,
    server: host.startsWith('/') ? host : `${host}:${port || 5432}`,
    role,
    database: decodeURIComponent(pathname.slice(1)) || role,
    message,
  }
}

/** The first pattern that matches code and message of the error. */
const REASONS: readonly (readonly [RegExp, (facts: Facts) => string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN) /, ({ host }) => `the host ${host} is not found: check its name, and the DNS`],
  [
    /^ECONNREFUSED /,
    ({ server }) => `nothing listens at ${server}: start the server, or check host and port`,
  ],
  [/^(ENOENT|EACCES) connect/, ({ server }) => `there is no socket in ${server}, or it may not be opened`],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) |timeout (expired|exceeded)/,
    ({ server }) => `${server} does not answer as PostgreSQL does: check host, port and firewall`,
  ],
  [
    /^(ECONNRESET|EPIPE) |Connection (terminated|ended) unexpectedly/,
    ({ server }) => `${server} closes the connection: is it a PostgreSQL server, and does it require TLS?`,
  ],
  [
    /^28P01 |(password|SASL) authentication failed/,
    ({ role }) =>
      `the server refuses the password of role ${role}: check it, with @ / ? # : in it percent-encoded`,
  ],
  [
    /client password must be a (non-empty )?string/,
    ({ role }) => `the server requires a password for role ${role}, and the URL has none`,
  ],
  [
    /unsupported startup parameter/i,
    ({ server, setting }) =>
      `a pooler such as PgBouncer answers at ${server}, and LISTEN, locks and migrations need a session of their own: ` +
      `name PostgreSQL's own address in ${setting.replace(/\.(direct_)?url\b.*/, '.direct_url')}`,
  ],
  [/^28000 /, ({ role, message }) => `the server refuses role ${role}: ${message}`],
  [
    /^3D000 /,
    ({ database, role }) =>
      `there is no database ${database}: make it with "create database ${database} owner ${role}", or name another`,
  ],
  [
    /^53300 /,
    () =>
      'the server has no connection left: raise its max_connections, or lower database.max_connections and server.workers',
  ],
  [/^57P03 /, ({ message }) => `the server takes no connections now (${message}): start again in a moment`],
  [
    /^25006 /,
    ({ server, role }) =>
      `${server} takes no writes of role ${role}: name the primary server if it is a standby, or remove default_transaction_read_only`,
  ],
  [
    /^42501 /,
    ({ database, role, message }) =>
      `role ${role} lacks a right (${message}): make it the owner of database ${database}`,
  ],
  [
    /does not support SSL/,
    ({ server }) => `${server} does not support TLS: enable it there, or remove sslmode from the URL`,
  ],
  [
    /CERT|certificate|altnames/,
    ({ message }) =>
      `the certificate of the server is not trusted (${message}): name its authority in NODE_EXTRA_CA_CERTS`,
  ],
]
