/**
 * A session of our own statements: names without a schema are those of the system, so that no function, type or operator that somebody
 * else has made in the same database is taken for one (docs/decisions/0026-names-with-their-schema.md). Sent in the startup message, behind
 * what the URL says; temporary tables last, since they come first where they are not named.
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
  /** It keeps prepared statements apart (PgBouncer from 1.21 on, with max_prepared_statements). */
  readonly prepares: boolean
}

/** Where pools go, and whether each transaction may have another session there. */
export type PoolAddress = { readonly url: string; readonly pooler?: PoolerAddress | undefined }

/** What a pool asks of its connections; behind a pooler the role has these settings (`pooler.ts`). */
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

/** `options` in a connection string would replace other ones in pg; it is taken out. */
export function splitOptions(url: string): { readonly rest: string; readonly options: string | undefined } {
  const match = /[?&]options=([^&]*)/.exec(url)
  if (!match) return { rest: url, options: undefined }
  const [found, value = ''] = match
  const rest = url.replace(found, found.startsWith('?') ? '?' : '').replace('?&', '?')
  return { rest, options: decodeURIComponent(value.replaceAll('+', ' ')) }
}
