import assert from 'node:assert/strict'
import { after } from 'node:test'
import pg from 'pg'
import type { Batch, Position } from '#databases/drivers/changes.ts'
import { createPostgresDriver, type PostgresOptions } from '#databases/drivers/postgres/driver.ts'
import type { TableName } from '#databases/request/request.ts'
import { testDatabase, withClient } from './database.ts'

export const publicTable = (table: string): TableName => ({ schema: 'public', table })

/** A driver of a database, with its feed. The tables are made live by name. */
export function feedOn(url: string, options: Partial<PostgresOptions> = {}) {
  const driver = createPostgresDriver({
    url,
    maxConnections: 4,
    sqlConnections: 1,
    maxWaiting: 100,
    connectTimeout: 5_000,
    statementTimeout: 10_000,
    idleTimeout: 10_000,
    applicationName: 'feed',
    maxRows: 100,
    answerBytes: 33_554_432,
    ...options,
  })
  after(() => driver.close())
  const { changes: feed, management } = driver
  const make = async ({ statements, ...conditions }: Awaited<ReturnType<typeof feed.enable>>) =>
    statements.length > 0 && (await management.run(statements, conditions))
  return {
    driver,
    feed,
    live: async (...tables: string[]) => {
      for (const table of tables) await make(await feed.enable(publicTable(table)))
    },
    ended: async (...tables: string[]) => {
      for (const table of tables) await make(await feed.disable(publicTable(table)))
    },
    names: async () => (await feed.tables()).map(({ table }) => table.table),
    /** Reads from the position on; fails where it is lost. */
    async read(after: Position): Promise<Batch> {
      const batch = await feed.read(after)
      assert('position' in batch, `lost: ${JSON.stringify(batch)}`)
      return batch
    },
  }
}

/** Changes as texts: `orders insert {"id":1}`, `orders reset truncated`. */
export const told = ({ tables }: Batch): readonly string[] =>
  tables.flatMap((change) =>
    'reset' in change
      ? [`${change.table.table} reset ${change.reset}`]
      : change.keys.map(({ op, key }) => `${change.table.table} ${op} ${key.json}`),
  )

/** A database of its own, with writers past the gateway. */
export async function feedDatabase() {
  const database = await testDatabase()
  after(() => database.drop())
  const sql = (text: string) => withClient(database.url, async (client) => (await client.query(text)).rows)
  return { url: database.url, sql, session: (url = database.url) => sessionOn(url) }
}

/** A session that stays open between statements. */
export async function sessionOn(url: string) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    run: async (text: string) => (await client.query(text)).rows,
    end: () => client.end(),
  }
}
