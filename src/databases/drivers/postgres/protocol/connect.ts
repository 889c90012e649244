import type pg from 'pg'
import { type Pooled, RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
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
 * Makes connected clients with the session that rows.ts and the plans rely on. Once one has met a pooler, the others ask for no session
 * of their own. Whatever keeps a client from connecting is a Failure.
 */
export function createConnector(options: ConnectOptions): () => Promise<RowClient> {
  let pooled: Pooled | undefined
  return async () => {
    const client = await connect(options, pooled)
    pooled = client.pooled
    return client
  }
}

export async function connect(options: ConnectOptions, pooled?: Pooled): Promise<RowClient> {
  try {
    if (pooled !== undefined) return await opened(options, pooled)
    return await opened(options).catch((error) => {
      if (isPoolersRefusal(error)) return opened(options, 'unknown')
      throw error
    })
  } catch (error) {
    const failure = connectFailure(error)
    // Certificates, SASL, a malformed URL: the messages may name the host, so they stay in the cause.
    throw failure instanceof Failure ? failure : fail('client_refused', { cause: error })
  }
}

async function opened(options: ConnectOptions, through?: Pooled | 'unknown'): Promise<RowClient> {
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

/** Without settings nothing goes into the startup message that a pooler would refuse. */
function configOf(
  options: ConnectOptions,
  settings: Readonly<Record<string, string>> | undefined,
): pg.ClientConfig {
  const { url } = options
  const given = typeof url === 'string' ? configOfUrl(url) : { config: url, extra: url.options }
  const all = Object.entries(settings ?? {}).map(([name, value]) => `-c ${name}=${value}`)
  const asked = settings === undefined ? '' : [given.extra, ...all].filter(Boolean).join(' ')
  return {
    ...given.config,
    ...(asked !== '' && { options: asked }),
    connectionTimeoutMillis: options.connectTimeout,
    application_name: options.applicationName,
  }
}

function configOfUrl(url: string): { readonly config: pg.ClientConfig; readonly extra: string | undefined } {
  const { rest, options } = splitOptions(url)
  return { config: { connectionString: withoutOurs(rest) }, extra: options }
}

/** What a connection string says would beat what is set here. */
function withoutOurs(url: string): string {
  const parsed = URL.parse(url)
  if (parsed === null || !OURS.some((name) => parsed.searchParams.has(name))) return url
  for (const name of OURS) parsed.searchParams.delete(name)
  return parsed.href
}

/** The pool keeps the time of a statement, rows are read as UTF-8, and another protocol than that of queries is none of ours. */
const OURS = [
  'statement_timeout',
  'idle_in_transaction_session_timeout',
  'query_timeout',
  'client_encoding',
  'replication',
]

/** Sent in the startup message, so that they cost no round trip; they beat what the role or the database has set. */
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
  statement_timeout: String(statementTimeout),
  idle_in_transaction_session_timeout: String(statementTimeout),
  ...(readOnly && { default_transaction_read_only: 'on' }),
})

/** A pooler in between may drop startup options. The server reports its time zone, so that is seen without asking. */
const isOurs = ({ reported }: RowClient): boolean =>
  reported.TimeZone === 'UTC' && reported.IntervalStyle === 'iso_8601'

/** For a connection that is in no pool yet, or in none at all: what is not answered in time ends with it. Milliseconds. */
export async function within<T>(time: number, client: RowClient, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => client.destroy(), time)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}
