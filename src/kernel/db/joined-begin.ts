import pg from 'pg'

type Statement = pg.QueryConfig

type Send = (text: string, values?: readonly unknown[]) => Promise<pg.QueryResult>

/**
 * Sends statements of Kysely on a connection of the pool. BEGIN goes with the first statement of its transaction, so that the server is
 * woken once for both. They have one Sync, so that when BEGIN fails, the server skips the statement (PostgreSQL, "Pipelining").
 */
export function joinBegin(
  client: pg.PoolClient,
  statementOf: (text: string, values: readonly unknown[]) => Statement,
): Send {
  let isBeginning = false
  let isPrepared = false
  return async (text, values = []) => {
    if (text === BEGIN.text && isPrepared) {
      isBeginning = true
      return answered('BEGIN')
    }
    if (text === BEGIN.text) {
      const result = await client.query(BEGIN)
      isPrepared = isPreparing(client)
      return result
    }
    // A transaction without a statement never began.
    if (isBeginning && (text === 'commit' || text === 'rollback')) {
      isBeginning = false
      return answered(text.toUpperCase())
    }
    // It may fail, and the next statement begins the transaction then.
    const statement = statementOf(text, values)
    if (!isBeginning) return client.query(statement)
    isBeginning = false
    return withBegin(client, statement)
  }
}

/** Named, so that after its first time on a connection it has no answer but its completion. */
const BEGIN = { name: 'begin', text: 'begin' } as const

const answered = (command: string): pg.QueryResult => ({
  command,
  rowCount: null,
  oid: 0,
  fields: [],
  rows: [],
})

/** Not in pg's types. */
type WireQuery = {
  queryMode: string
  /** Several once the second has begun. */
  readonly _results: pg.QueryResult | readonly pg.QueryResult[]
  prepare(connection: Wire): void
}
type Wire = {
  readonly stream: { destroy(): void }
  readonly parsedStatements: Readonly<Record<string, string>>
  bind(message: { readonly statement: string; readonly values: readonly unknown[] }): void
  execute(message: { readonly portal: string }): void
}

/** False behind a pooler that supports no prepared statements. */
const isPreparing = (client: pg.PoolClient): boolean =>
  wireOf(client).parsedStatements[BEGIN.name] !== undefined

const wireOf = (client: pg.PoolClient): Wire =>
  (client as unknown as { readonly connection: Wire }).connection

function withBegin(client: pg.PoolClient, statement: Statement): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query(statement, (error, results) => {
      // One for BEGIN, and one for the statement.
      if (!error) return resolve((results as unknown as readonly [pg.QueryResult, pg.QueryResult])[1])
      // Kysely believes that the transaction has begun, so its next statement would be committed by itself.
      const isRefused = error instanceof pg.DatabaseError && [wire._results].flat()[0]?.command !== 'BEGIN'
      if (isRefused) wireOf(client).stream.destroy()
      reject(error)
    })
    const wire = query as unknown as WireQuery
    // Also without a name or values, since the simple protocol has a Sync of its own.
    wire.queryMode = 'extended'
    const prepare = wire.prepare.bind(query)
    wire.prepare = (connection) => {
      connection.bind({ statement: BEGIN.name, values: [] })
      connection.execute({ portal: '' })
      prepare(connection)
    }
    client.query(query)
  })
}
