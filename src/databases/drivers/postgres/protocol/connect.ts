import type pg from 'pg'
import { type Pooler, RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { connectFailure } from '#databases/drivers/postgres/protocol/errors.ts'
import { isPoolersRefusal, pooledBy } from '#databases/drivers/postgres/protocol/pooler.ts'
import { fail } from '#databases/failures.ts'
import { splitOptions } from '#kernel/db/session-settings.ts'
import { Failure } from '#kernel/errors.ts'

export type ConnectOptions = {
  readonly url: string | pg.ClientConfig
  /** Milliseconds. */
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly applicationName: string
  readonly readOnly?: boolean
}

/**
 * Makes connected clients with the session settings that rows.ts and the plans need. Once a client has met a pooler, later ones send no
 * session settings. Any error of connecting becomes a Failure.
 */
export function createConnector(options: ConnectOptions): () => Promise<RowClient> {
  let pooled: Pooler | undefined
  return async () => {
    const client = await connect(options, pooled)
    pooled = client.pooled
    return client
  }
}

export async function connect(options: ConnectOptions, pooled?: Pooler): Promise<RowClient> {
  try {
    if (pooled !== undefined) return await opened(options, pooled)
    return await opened(options).catch((error) => {
      if (isPoolersRefusal(error)) return opened(options, 'unknown')
      throw error
    })
  } catch (error) {
    const failure = connectFailure(error)
    // Messages about certificates, SASL or a malformed URL may name the host, so they are only the cause.
    throw failure instanceof Failure ? failure : fail('client_refused', { cause: error })
  }
}

async function opened(options: ConnectOptions, through?: Pooler | 'unknown'): Promise<RowClient> {
  const settings = sessionSettings(options)
  const client = new RowClient(configOf(options, through === undefined ? settings : undefined))
  try {
    await client.connect()
    if (through === undefined && isOurs(client)) return client
    client.pooled =
      typeof through === 'object'
        ? through
        : await within(options.connectTimeout, client, () => pooledBy(client, settings))
    return client
  } catch (error) {
    client.destroy()
    throw error
  }
}

/** Without settings, the startup message has nothing that a pooler refuses. */
function configOf(
  options: ConnectOptions,
  settings: Readonly<Record<string, string>> | undefined,
): pg.ClientConfig {
  const { url } = options
  const given = typeof url === 'string' ? configOfUrl(url) : { config: url, extra: url.options }
  const all = Object.entries(settings ?? {}).map(([name, value]) => `-c ${name}=${value}`)
  const asked = settings === undefined ? '' : [NO_LIBRARIES, given.extra, ...all].filter(Boolean).join(' ')
  return {
    ...given.config,
    ...(asked !== '' && { options: asked }),
    connectionTimeoutMillis: options.connectTimeout,
    application_name: options.applicationName,
  }
}

/** A role may give itself a library that does not exist, with which no session would begin. */
const NO_LIBRARIES = '-c local_preload_libraries='

function configOfUrl(url: string): { readonly config: pg.ClientConfig; readonly extra: string | undefined } {
  const { rest, options } = splitOptions(url)
  return { config: { connectionString: withoutOurs(rest) }, extra: options }
}

/** Removes parameters of the connection string that would override the settings here. */
function withoutOurs(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !OURS.some((name) => parsed.searchParams.has(name))) return url
  for (const name of OURS) parsed.searchParams.delete(name)
  return parsed.href
}

/** The pool limits the time of statements, rows are read as UTF-8, and only the query protocol is supported. */
const OURS = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
  'query_timeout',
  'client_encoding',
  'replication',
]

/** Sent in the startup message, without a round trip. They override settings of the role and the database. */
const sessionSettings = ({
  statementTimeout,
  readOnly,
}: ConnectOptions): Readonly<Record<string, string>> => ({
  DateStyle: 'ISO',
  TimeZone: 'UTC',
  IntervalStyle: 'iso_8601',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  // Rows to insert are arrays, in which a null would otherwise be read as the text NULL.
  array_nulls: 'on',
  statement_timeout: String(statementTimeout),
  idle_in_transaction_session_timeout: String(statementTimeout),
  ...(readOnly && { default_transaction_read_only: 'on' }),
})

/** A pooler may drop startup options. The server reports its time zone, so this is visible without a query. */
const isOurs = ({ reported }: RowClient): boolean =>
  reported.TimeZone === 'UTC' && reported.IntervalStyle === 'iso_8601'

/** A time limit for a connection outside a pool: it is closed when the work takes longer. Milliseconds. */
export async function within<T>(time: number, client: RowClient, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => client.destroy(), time)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}
