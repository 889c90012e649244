import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { eventually } from '#test/embedded.ts'
import { type Answer, controlDatabase, type TestService, testService } from '#test/harness.ts'
import { startPgBouncer, WITHOUT_PGBOUNCER } from '#test/pgbouncer.ts'

const skip = WITHOUT_PGBOUNCER
const [sales, other] = [await testDatabase(), await testDatabase()]
const pooler = skip === false ? await startPgBouncer(testServerUrl()) : undefined
after(() => pooler?.stop())
const through = (url: string): string =>
  Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(pooler?.port) }).href
const controlUrl = await controlDatabase()
const secrets = (...of: [string, string?]) => createSecrets(of[0], secureRandom, of[1])
const t = await testService({
  controlUrl,
  secrets: secrets('first'),
  environment: { SALES_DIRECT: sales.url, NOTHING: 'nothing' },
})
const register = (client_name: string, more: object, { admin }: TestService = t) =>
  admin.post('/admin/clients', { client_name, ...more })
const change = (name: string, body: object) => t.admin.send('PATCH', `/admin/clients/${name}`, { body })
const refusal = ({ status, body }: Answer) => [status, body.code, body.message]

test('a registered client has a direct URL, sealed, shown without its password, changed and taken away', {
  skip,
}, async () => {
  const registered = await register('sales', { url: through(sales.url), direct_url: sales.url })
  assert.equal(registered.status, 201, registered.text)
  const { password, host } = new URL(sales.url)
  const { direct_url, direct_url_env_var } = registered.body.data
  assert.ok(direct_url.includes(host) && !direct_url.includes(password), direct_url)
  assert.equal(direct_url_env_var, null)
  const byVariable = await change('sales', { direct_url_env_var: 'SALES_DIRECT' })
  assert.deepEqual(
    [byVariable.body.data.direct_url, byVariable.body.data.direct_url_env_var],
    [null, 'SALES_DIRECT'],
  )
  const without = await change('sales', { direct_url_env_var: null })
  assert.deepEqual([without.body.data.direct_url, without.body.data.direct_url_env_var], [null, null])
  assert.equal((await change('sales', { direct_url: sales.url })).status, 200)
  const { rows } = await withClient(controlUrl, (client) =>
    client.query(`select sealed_direct_url from service.database_client where client_name = 'sales'`),
  )
  assert.match(rows[0].sealed_direct_url, /^v1\./)
  assert.equal((await t.admin.send('DELETE', '/admin/clients/sales')).status, 200)
  const removed = await withClient(controlUrl, (client) =>
    client.query(
      'select from service.database_client where coalesce(sealed_direct_url, direct_url_env_var) is not null',
    ),
  )
  assert.equal(removed.rowCount, 0)
})

test('a direct URL of another database, of another role, of a pooler or of another driver is refused', {
  skip,
}, async () => {
  const url = through(sales.url)
  const elsewhere =
    'The direct_url of client wrong leads to another database, or to another role, than its url'
  for (const [direct_url, message] of [
    [other.url, elsewhere],
    [through(sales.url), 'The direct_url of client wrong leads to a pooler'],
    ['https://db.example.com', 'Invalid database URL for a client'],
  ])
    assert.deepEqual(refusal(await register('wrong', { url, direct_url })), [
      400,
      'invalid_client_url',
      message,
    ])
  const superuser = Object.assign(new URL(testServerUrl()), { pathname: new URL(sales.url).pathname }).href
  assert.deepEqual(refusal(await register('wrong', { url, direct_url: superuser })).slice(0, 2), [
    400,
    'unsafe_client',
  ])
  const both = { url, direct_url: sales.url, direct_url_env_var: 'SALES_DIRECT' }
  assert.deepEqual(refusal(await register('wrong', both)), [
    400,
    'validation_error',
    'direct_url and direct_url_env_var cannot be combined',
  ])
  const unset = await register('wrong', { url, direct_url_env_var: 'NOTHING' })
  assert.match(unset.body.message, /^The environment variable NOTHING does not contain/)
  const project = { driver: 'supabase', url: 'https://:key@db.example.com', direct_url: sales.url }
  assert.equal((await register('wrong', project)).body.code, 'invalid_client_url')
  assert.deepEqual((await t.admin.get('/clients')).body.clients, ['default', 'logging'])
  // The database of the pooler's address has changed, and the direct one has not.
  assert.equal((await register('moved', { url, direct_url: sales.url })).status, 201)
  assert.equal((await change('moved', { url: through(other.url) })).body.code, 'invalid_client_url')
  assert.equal((await change('moved', { url: through(other.url), direct_url: other.url })).status, 200)
})

test('direct URLs outlast a rotation of the secret', { skip }, async () => {
  assert.equal((await register('kept', { url: through(sales.url), direct_url: sales.url })).status, 201)
  const sealed = async () => {
    const { rows } = await withClient(controlUrl, (client) =>
      client.query(
        `select sealed_direct_url as text from service.database_client where client_name = 'kept'`,
      ),
    )
    return rows[0].text as string
  }
  const before = await sealed()
  await testService({ controlUrl, secrets: secrets('second', 'first') })
  await eventually(async () => (await sealed()) !== before)
  const later = await testService({ controlUrl, secrets: secrets('second') })
  const { clients } = (await later.admin.get('/admin/clients')).body.data
  const { direct_url } = clients.find(({ client_name }: { client_name: string }) => client_name === 'kept')
  assert.ok(direct_url.includes(new URL(sales.url).host))
})
