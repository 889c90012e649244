/**
 * A session for our own statements: names without a schema are those of the system, and never functions, types or operators that others
 * have created in the same database (docs/decisions/0026-names-with-their-schema.md). Sent in the startup message, after the options
 * of the URL. pg_temp is named last, since it would come first if it were not named.
 */
export function systemSession(url: string): { readonly connectionString: string; readonly options: string } {
  const { rest, options } = splitOptions(url)
  return {
    connectionString: rest,
    options: [options, '-c search_path=pg_catalog,pg_temp'].filter(Boolean).join(' '),
  }
}

/** The control database through a pooler in transaction mode, which takes no settings of a session. */
export type PoolerAddress = {
  readonly url: string
  /** Whether it supports prepared statements (PgBouncer from 1.21 on, with max_prepared_statements). */
  readonly prepares: boolean
}

/** The address that pools connect to: with a pooler, each transaction may run in another session. */
export type PoolAddress = { readonly url: string; readonly pooler?: PoolerAddress | undefined }

type PooledSession = {
  readonly connectionString: string
  readonly options?: string
  readonly statement_timeout?: number
  readonly prepares?: boolean
}

/** The settings of a pool's connections. With a pooler, the role has them (`pooler.ts`). */
export const pooledSession = ({ url, pooler }: PoolAddress, statementTimeout: number): PooledSession =>
  pooler === undefined
    ? { ...systemSession(url), statement_timeout: statementTimeout }
    : { connectionString: pooler.url, prepares: pooler.prepares }

/** A session in which the server refuses every write. */
export function readOnly(url: string): string {
  const { rest, options } = splitOptions(url)
  const all = encodeURIComponent([options, '-c default_transaction_read_only=on'].filter(Boolean).join(' '))
  return `${rest}${rest.includes('?') ? '&' : '?'}options=${all}`
}

/**
 * A session that does not depend on what its role and its database were given (`alter role … set`), which callers may have done. The URL's
 * own options come later and win. `major` is the server's version: a server refuses settings that it does not know.
 */
export function ownSession(url: string, major: number): string {
  const { rest, options } = splitOptions(url)
  const known = GIVEN.filter(([, since = 0]) => major >= since).map(([setting]) => `-c ${setting}`)
  const all = encodeURIComponent([...known, options].filter(Boolean).join(' '))
  return `${rest}${rest.includes('?') ? '&' : '?'}options=${all}`
}

/** Settings with which a role may prevent or change the sessions of others, and the first version that knows them. */
const GIVEN: readonly (readonly [setting: string, since?: number])[] = [
  ['role=none'],
  ['local_preload_libraries='],
  ['default_transaction_read_only=off'],
  ['default_transaction_isolation=read\\ committed'],
  ['default_transaction_deferrable=off'],
  ['default_tablespace='],
  ['default_table_access_method=heap', 12],
  // These two decide how the text of a value is read and written.
  ['array_nulls=on'],
  ['lc_monetary=C'],
  ['statement_timeout=0'],
  ['lock_timeout=0'],
  ['idle_in_transaction_session_timeout=0'],
  ['idle_session_timeout=0', 14],
  ['transaction_timeout=0', 17],
  ['tcp_user_timeout=0', 12],
  ['restrict_nonsystem_relation_kind=', 17],
]

/** Takes `options` out of a connection string, where it would replace the other options in pg. */
export function splitOptions(url: string): { readonly rest: string; readonly options: string | undefined } {
  const match = /[?&]options=([^&]*)/.exec(url)
  if (!match) return { rest: url, options: undefined }
  const [found, value = ''] = match
  const rest = url.replace(found, found.startsWith('?') ? '?' : '').replace('?&', '?')
  return { rest, options: decodeURIComponent(value.replaceAll('+', ' ')) }
}
