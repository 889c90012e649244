import { after } from 'node:test'
import { openSupabase } from '#databases/drivers/supabase/open.ts'
import { defaultConfig } from '#kernel/config/config.ts'
import { createLog } from '#kernel/log.ts'
import { testDatabase, withClient } from '#test/database.ts'
import { BOOKSHOP_TABLES } from '#test/drivers/bookshop-tables.ts'
import { startPostgrestEndpoint } from './endpoint.ts'

/** Serves the tables of the driver contract by a PostgREST endpoint with a driver on it. All are closed after the file's tests. */
export async function createBookshop() {
  const database = await testDatabase()
  const direct = async (...statements: string[]) =>
    withClient(database.url, async (client) => {
      for (const statement of statements) await client.query(statement)
    })
  await direct('create schema sales', ...BOOKSHOP_TABLES)
  const endpoint = await startPostgrestEndpoint(database.url, ['public', 'sales'])
  const open = (readOnly = false) => openSupabase(making, { ...settings, url: endpoint.url, readOnly })
  const driver = open()
  after(async () => {
    await driver.close()
    await endpoint.close()
    await database.drop()
  })
  /** Runs SQL directly on the database, and invalidates the driver's catalogue. */
  const run = async (...statements: string[]) => {
    await direct(...statements)
    driver.invalidate()
  }
  const reset = () => run('truncate books, authors restart identity cascade')
  return { driver, endpoint, open, direct, run, reset }
}

const making = {
  config: defaultConfig({ gateway: { max_rows: 50 } }),
  log: createLog({ level: 'silent', format: 'json' }),
}
const settings = {
  name: 'shop',
  driver: 'supabase' as const,
  max_connections: 4,
  sql_connections: 4,
  max_waiting: 1_000,
  connect_timeout: 2_000,
  statement_timeout: 10_000,
  idle_timeout: 10_000,
}
