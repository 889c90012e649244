import pg from 'pg'

/** A database that a setting names cannot be used; the message names the setting and says what to do. */
export class UnusableDatabase extends Error {
  override readonly name = 'UnusableDatabase'
}

/** Runs work on a database that the operator named. What the database or the way to it refuses is said by that setting. */
export async function namedBy<T>(setting: string, url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explained(setting, url, error)
  }
}

/** The sentence for what `pg`, Node or the server threw; any other error stays as it is. */
export function explained(setting: string, url: string, thrown: unknown): unknown {
  const error = firstOf(thrown)
  if (!(error instanceof Error)) return thrown
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const facts = factsOf(url, error.message)
  const [, says] = REASONS.find(([pattern]) => pattern.test(`${code} ${error.message}`)) ?? []
  const reason = says?.(facts) ?? (error instanceof pg.DatabaseError ? error.message : undefined)
  return reason === undefined ? thrown : new UnusableDatabase(`${setting}: ${reason}`, { cause: thrown })
}

/** A name with several addresses fails with an error for each of them. */
const firstOf = (thrown: unknown): unknown => (thrown instanceof AggregateError ? thrown.errors[0] : thrown)

type Facts = {
  readonly host: string
  /** Host and port, or the folder of a socket. */
  readonly server: string
  readonly role: string
  readonly database: string
  /** The server's own words. */
  readonly message: string
}

function factsOf(url: string, message: string): Facts {
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

/** By the code and the message of the error; the first that fits. */
const REASONS: readonly (readonly [RegExp, (facts: Facts) => string])[] = [
  [/^(ENOTFOUND|EAI_AGAIN) /, ({ host }) => `the host ${host} is not found: check its name, and the DNS`],
  [
    /^ECONNREFUSED /,
    ({ server }) => `nothing listens at ${server}: start the server, or check host and port`,
  ],
  [/^(ENOENT|EACCES) connect/, ({ server }) => `there is no socket in ${server} that may be opened`],
  [
    /^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH) |timeout (expired|exceeded)/,
    ({ server }) => `${server} does not answer as PostgreSQL does: check host, port and firewall`,
  ],
  [
    /^(ECONNRESET|EPIPE) |Connection (terminated|ended) unexpectedly/,
    ({ server }) =>
      `${server} breaks the connection off: is it a PostgreSQL server, and does it ask for TLS?`,
  ],
  [
    /^28P01 |(password|SASL) authentication failed/,
    ({ role }) =>
      `the server refuses the password of role ${role}: check it, with @ / ? # : in it percent-encoded`,
  ],
  [
    /client password must be a (non-empty )?string/,
    ({ role }) => `the server asks for a password of role ${role}, and the URL has none`,
  ],
  [
    /unsupported startup parameter/i,
    ({ server }) =>
      `a pooler such as PgBouncer answers at ${server}, and LISTEN, locks and migrations need a session of their own: ` +
      "name PostgreSQL's own address, for the control database in database.direct_url",
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
  [/^25006 /, ({ server }) => `${server} only reads (a standby): name the primary server`],
  [
    /^42501 /,
    ({ database, role, message }) =>
      `role ${role} may not do what is needed (${message}): make it the owner of database ${database}`,
  ],
  [
    /does not support SSL/,
    ({ server }) => `${server} speaks no TLS: switch it on there, or take sslmode out of the URL`,
  ],
  [
    /CERT|certificate|altnames/,
    ({ message }) =>
      `the certificate of the server is not trusted (${message}): name its authority in NODE_EXTRA_CA_CERTS`,
  ],
]
