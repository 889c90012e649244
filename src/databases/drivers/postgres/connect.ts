import type pg from 'pg'
import { RowClient } from '#databases/drivers/postgres/connection.ts'
import { connectFailure } from '#databases/drivers/postgres/errors.ts'
import { fail } from '#databases/failures.ts'
import { splitOptions } from '#kernel/db/session.ts'
import { Failure } from '#kernel/errors.ts'

export type ConnectOptions = {
  readonly url: string | pg.ClientConfig
  /** Milliseconds. */
  readonly connectTimeout: number
  readonly statementTimeout: number
  readonly applicationName: string
  readonly readOnly?: boolean
}

/** A connected client with the session that rows.ts and the plans rely on. Whatever keeps it from connecting is a Failure. */
export async function connect(options: ConnectOptions): Promise<RowClient> {
  const settings = sessionSettings(options)
  let client: RowClient | undefined
  try {
    client = new RowClient(configOf(options, settings))
    await client.connect()
    await ensure(client, settings, options.connectTimeout)
    return client
  } catch (error) {
    client?.destroy()
    const failure = connectFailure(error)
    // Certificates, SASL, a malformed URL: the messages may name the host, so they stay in the cause.
    throw failure instanceof Failure ? failure : fail('client_refused', { cause: error })
  }
}

function configOf(options: ConnectOptions, settings: Readonly<Record<string, string>>): pg.ClientConfig {
  const { url } = options
  const given = typeof url === 'string' ? configOfUrl(url) : { config: url, extra: url.options }
  const all = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  return {
    ...given.config,
    options: [given.extra, ...all].filter(Boolean).join(' '),
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
async function ensure(
  client: RowClient,
  settings: Readonly<Record<string, string>>,
  patience: number,
): Promise<void> {
  const { TimeZone, IntervalStyle } = client.reported
  if (TimeZone === 'UTC' && IntervalStyle === 'iso_8601') return
  const statements = Object.entries(settings).map(([name, value]) => `set ${name} = '${value}'`)
  await within(patience, client, () => client.query(statements.join(';')))
}

/** For a connection that is in no pool yet, or in none at all: what is not answered in time ends with it. Milliseconds. */
export async function within<T>(time: number, client: RowClient, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => client.destroy(), time)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
  }
}
