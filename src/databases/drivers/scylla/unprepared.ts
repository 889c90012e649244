import type { Client } from 'cassandra-driver'
import { type Page, pageOf } from '#databases/drivers/scylla/cells.ts'
import {
  type Connection,
  connectTo,
  nearestHost,
  type Parameter,
  parametersOnce,
  runOn,
} from '#databases/drivers/scylla/library.ts'
import type { Watch } from '#databases/drivers/scylla/liveness.ts'
import { fail } from '#databases/failures.ts'

type PageOptions = {
  readonly values: readonly unknown[]
  readonly size: number
  readonly after: string | undefined
}

/**
 * Statements of the caller's own text. They run unprepared: each text may be new, and the caches of prepared statements in the server and
 * the library are for plans. Only values need the types of their parameters, which requires preparing.
 */
export type UnpreparedStatements = {
  parameters(text: string): Promise<readonly Parameter[]>
  page(text: string, how: PageOptions): Promise<Page>
}

type UnpreparedOptions = {
  readonly keyspace: string
  readonly statementTimeout: number
  readonly isWrite: boolean
  readonly watch: Watch
}

/** A connection has one keyspace for all its users, so another keyspace gets a separate connection while the work runs. */
export async function runUnprepared<T>(
  client: Client,
  { keyspace, statementTimeout, isWrite, watch }: UnpreparedOptions,
  work: (statements: UnpreparedStatements) => Promise<T>,
): Promise<T> {
  const optionsOf = ({ size, after }: PageOptions) => ({
    prepare: false,
    fetchSize: size,
    isIdempotent: !isWrite,
    readTimeout: statementTimeout,
    ...(after !== undefined && { pageState: after }),
  })
  if (keyspace === client.keyspace)
    return work({
      parameters: (text) => parametersOnce(connectionOf(client), text, keyspace),
      page: async (text, how) => pageOf(await client.execute(text, [...how.values], optionsOf(how))),
    })
  return onConnection(client, { keyspace, watch }, (connection) =>
    work({
      parameters: (text) => parametersOnce(connection, text, keyspace),
      page: (text, how) => runOn(connection, client, text, { values: how.values, ...optionsOf(how) }),
    }),
  )
}

async function onConnection<T>(
  client: Client,
  { keyspace, watch }: Pick<UnpreparedOptions, 'keyspace' | 'watch'>,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const host = nearestHost(client)
  if (host === undefined) throw fail('client_unavailable')
  const connection = await connectTo(client, host)
  watch.add(host, connection)
  try {
    await connection.changeKeyspace(keyspace)
    return await work(connection)
  } finally {
    watch.remove(connection)
    await connection.closeAsync()
  }
}

function connectionOf(client: Client): Connection {
  const connection = nearestHost(client)?.pool.connections[0]
  if (connection === undefined) throw fail('client_unavailable')
  return connection
}
