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

/** The settings of a pool's connections. With a pooler, the role has them (`pooler.ts`). */
export const pooledSession = (
  { url, pooler }: PoolAddress,
  statementTimeout: number,
): { readonly connectionString: string; readonly options?: string; readonly statement_timeout?: number } =>
  pooler === undefined
    ? { ...systemSession(url), statement_timeout: statementTimeout }
    : { connectionString: pooler.url }

/** A session in which the server refuses every write. */
export function readOnly(url: string): string {
  const { rest, options } = splitOptions(url)
  const all = encodeURIComponent([options, '-c default_transaction_read_only=on'].filter(Boolean).join(' '))
  return `${rest}${rest.includes('?') ? '&' : '?'}options=${all}`
}

/** Takes `options` out of a connection string, where it would replace the other options in pg. */
export function splitOptions(url: string): { readonly rest: string; readonly options: string | undefined } {
  const match = /[?&]options=([^&]*)/.exec(url)
  if (!match) return { rest: url, options: undefined }
  const [found, value = ''] = match
  const rest = url.replace(found, found.startsWith('?') ? '?' : '').replace('?&', '?')
  return { rest, options: decodeURIComponent(value.replaceAll('+', ' ')) }
}
