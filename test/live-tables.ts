import assert from 'node:assert/strict'
import { withClient } from './database.ts'
import { openStream } from './event-stream.ts'
import { type Options, testService } from './harness.ts'

/** A service with a key that makes tables live and follows them. `structure`: SQL that is run first. */
export async function liveTables(structure: string, config: NonNullable<Options['config']> = {}) {
  const t = await testService({ config })
  const key = await t.key(['gateway.*', 'management.*'])
  /** Past the gateway. */
  const sql = (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)
  /** Through the gateway, which knows the table then. */
  const ddl = async (query: string) => {
    const answer = await key.post('/gateway/query', { query })
    assert.equal(answer.status, 200, answer.text)
  }
  let count = 0
  await ddl(structure)
  return {
    t,
    key,
    sql,
    ddl,
    /** A new live table. */
    async liveTable(columns = 'id int primary key, title text, pages int'): Promise<string> {
      const name = `book_${++count}`
      await ddl(`create table ${name} (${columns})`)
      const body = { enabled: true }
      const enabled = await key.send('PUT', `/management/tables/${name}/realtime`, { body })
      assert.equal(enabled.status, 200, enabled.text)
      return name
    },
    follow: (tables: readonly object[], headers: Record<string, string> = {}, more: object = {}) =>
      openStream(`${t.url}/realtime`, { headers: { ...key.headers, ...headers }, body: { tables, ...more } }),
    fetched: async (table: string, more: object = {}) =>
      (await key.post('/gateway/fetch', { table_name: table, sort_by: { field: 'id' }, ...more })).body.data,
    async insert(table_name: string, insert_body: object): Promise<void> {
      const answer = await key.send('PUT', '/gateway/insert', { body: { table_name, insert_body } })
      assert.equal(answer.status, 200, answer.text)
    },
  }
}
