import { after } from 'node:test'
import { testDatabase, withClient } from './database.ts'
import { type Actor, type Options, testService } from './harness.ts'

type Gateway = NonNullable<NonNullable<Options['config']>['gateway']>
type Connections = { readonly here?: object; readonly there?: object }

/** A service with a source and a sink: the clients `here` and `there`, and `open`, the same sink without keys. */
export async function pipelineService(
  pipelines: NonNullable<Gateway['pipelines']>,
  connections: Connections = {},
) {
  const [here, there] = [await testDatabase(), await testDatabase()]
  const t = await testService({
    config: {
      clients: {
        here: { url: here.url, ...connections.here },
        there: { url: there.url, ...connections.there },
        open: { url: there.url, enforce_api_keys: false },
      },
      gateway: { pipelines },
    },
  })
  after(async () => {
    await t.stop()
    await Promise.all([here.drop(), there.drop()])
  })
  const sql = (url: string, text: string) =>
    withClient(url, async (client) => (await client.query(text)).rows)
  const key = await t.key(['*'], { client_name: null })
  const on = (client: string, more: object = {}) => ({ headers: { 'x-service-client': client, ...more } })
  return {
    t,
    here,
    there,
    sql,
    run: (body: object, who: Actor = key, client = 'here') => who.post('/pipelines', body, on(client)),
    simulate: (body: object, who: Actor = key) => who.post('/pipelines/simulate', body, on('here')),
    /** Rows in a table of the sink. */
    count: async (table: string) => Number((await sql(there.url, `select count(*) from ${table}`))[0].count),
  }
}
