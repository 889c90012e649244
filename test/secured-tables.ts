import assert from 'node:assert/strict'
import { after } from 'node:test'
import { type Actor, actor, type Options, testService } from './harness.ts'
import { createSecuredClient } from './secured-client.ts'

type Settings = NonNullable<Options['config']>

/**
 * A service with a client `app` with row-level security, whose tables are made and protected over HTTP: `admin` has a key that bypasses
 * policies; Ada, Bea and a stranger share the key of a page.
 */
export async function createSecuredTables({
  auth = {},
  outbound = {},
  server = {},
  rate_limits = {},
  rowLevelSecurity = {},
  controlUrl,
}: Pick<Settings, 'auth' | 'outbound' | 'server' | 'rate_limits'> &
  Pick<Options, 'controlUrl'> & { readonly rowLevelSecurity?: object } = {}) {
  const { database, roles, sql, settings, drop } = await createSecuredClient(rowLevelSecurity)
  const t = await testService({
    ...(controlUrl !== undefined && { controlUrl }),
    config: {
      ...{ auth, outbound, server, rate_limits },
      // A change of policies ends the answers of the cache too.
      gateway: { cache: { ttl: 60_000 } },
      clients: { app: settings },
    },
  })
  after(async () => {
    await t.stop()
    await drop()
  })

  const bound = { client_name: 'app' }
  const keyWith = async (rights: readonly string[]) => {
    const { apiKey } = await t.key(rights, bound)
    return actor(t.url, { apikey: apiKey, 'x-service-client': 'app' })
  }
  const admin = await keyWith([
    'management.*',
    'management.functions.write',
    'gateway.*',
    'gateway.bypass_row_level_security',
  ])
  const pages = (
    await t.key(['gateway.read', 'gateway.write', 'gateway.delete', 'gateway.rpc.execute'], bound)
  ).apiKey
  const [ada, bea] = [await t.signUp('Ada'), await t.signUp('Bea')]
  const as = (token?: string): Actor =>
    actor(t.url, {
      apikey: pages,
      'x-service-client': 'app',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    })
  const [adas, beas, stranger] = [as(ada.token), as(bea.token), as()]

  const createTable = async (table_name: string, columns: readonly object[]) => {
    const made = await admin.post('/management/tables', { table_name, columns })
    assert.equal(made.status, 200, made.text)
  }
  const secure = (table: string, body: object, who = admin) =>
    who.send('PUT', `/management/tables/${table}/row-level-security`, { body: { enabled: true, ...body } })
  const secured = async (table: string, policies: readonly object[], more: object = {}) => {
    const answer = await secure(table, { policies, ...more })
    assert.equal(answer.status, 200, answer.text)
    return answer.body.data
  }
  const readBack = async (table: string) =>
    (await admin.get(`/management/tables/${table}/row-level-security`)).body.data
  const insert = (who: Actor, table_name: string, insert_body: object, more: object = {}) =>
    who.send('PUT', '/gateway/insert', { body: { table_name, insert_body, ...more } })
  const fetched = async (who: Actor, table_name: string, more: object = {}) => {
    const answer = await who.post('/gateway/fetch', { table_name, sort_by: { field: 'id' }, ...more })
    return answer.status === 200 ? answer.body.data : answer.body.code
  }
  return {
    t,
    sql,
    database,
    roles,
    users: { ada, bea },
    admin,
    adas,
    beas,
    stranger,
    keyWith,
    createTable,
    secure,
    secured,
    readBack,
    insert,
    fetched,
  }
}

export const TEXT = { name: 'text', data_type: 'text' }
export const USER = { name: 'user_id', data_type: 'uuid' }
