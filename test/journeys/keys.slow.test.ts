import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { test } from 'node:test'
import { newFolder } from '#test/embedded.ts'
import { actor, TEST_SECRET, testService } from '#test/harness.ts'
import { createCommandRunner } from './command.ts'

const t = await testService()

test('gatehouse keys creates keys only for existing clients and rights, and revokes them by id, public id or name', async (context) => {
  const folder = await newFolder(context)
  await mkdir(folder)
  const env = {
    DATABASE_URL: t.controlUrl,
    SERVICE_SECRET: TEST_SECRET,
    SERVICE_CLIENTS__SHOP__URL: 'postgres://shop@localhost:1/shop',
    SERVICE_CLIENTS__RLS__URL: 'postgres://shop@localhost:1/shop',
    SERVICE_CLIENTS__RLS__ROW_LEVEL_SECURITY__ENABLED: 'true',
  }
  const run = createCommandRunner(folder, env, 'keys')
  const keys = (...args: string[]) => run(args)
  const create = (name: string, rights: string, client = 'shop') =>
    keys('create', name, '--rights', rights, '--client', client, '--json')
  await t.admin.post('/admin/clients', {
    client_name: 'registered',
    url: 'postgres://shop@localhost:1/shop',
  })

  const [unknownClient, unknownRight, withoutClient] = await Promise.all([
    create('a', 'users.read', 'shopp'),
    create('a', 'users.read,user,managment.read'),
    keys('create', 'a', '--rights', 'management.read'),
  ])
  assert.deepEqual([unknownClient.code, unknownRight.code, withoutClient.code], [1, 2, 2])
  assert.match(unknownClient.stderr, /^There is no client shopp\. Existing clients: .*registered.*shop\.$/m)
  assert.equal(unknownRight.stderr, 'Unknown rights: user. gatehouse keys create --help lists the rights.\n')
  assert.match(
    withoutClient.stderr,
    /^management\.read: management rights need a key that is bound to a client/,
  )
  assert.deepEqual((await t.admin.get('/admin/api-keys')).body.data.api_keys, [])

  const createForBrowser = (rights: string, client: string) =>
    keys('create', 'page', '--rights', rights, '--client', client, '--browser', '--json')
  const [withSql, withAll, withoutPolicies, accepted] = await Promise.all([
    createForBrowser('*.read,gateway.query.read', 'rls'),
    createForBrowser('*', 'rls'),
    createForBrowser('*.read', 'shop'),
    createForBrowser('*.read,orders.*', 'rls'),
  ])
  assert.match(withSql.stderr, /^--browser: every visitor of the page would have gateway\.query\.read\. /)
  assert.match(withAll.stderr, /^--browser: every visitor of the page would have \*\. /)
  assert.match(withoutPolicies.stderr, /could reach all rows\. Use a --client with row_level_security/)
  assert.equal(accepted.code, 0, accepted.stderr)

  const reporting = JSON.parse((await create('reporting', 'users.read', 'registered')).stdout)
  const [first, second] = [
    await t.key(['*'], { name: 'shared-name' }),
    await t.key(['*'], { name: 'shared-name' }),
  ]
  const status = async (apikey: string) =>
    (await actor(t.url, { apikey }).post('/gateway/fetch', { table_name: 'users' })).status
  assert.equal(await status(reporting.api_key), 400, 'the key is valid, only the client is missing')

  assert.deepEqual(await keys('revoke', 'reporting'), { code: 0, stdout: 'revoked\n', stderr: '' })
  assert.equal(await status(reporting.api_key), 401)
  const ambiguous = await keys('revoke', 'shared-name')
  assert.equal(ambiguous.code, 1)
  assert.match(
    ambiguous.stderr,
    new RegExp(
      `^Several keys are named shared-name: .*(?:${first.keyId}, ${second.keyId}|${second.keyId}, ${first.keyId})`,
    ),
  )
  const [byPublicId, byId, absent] = await Promise.all([
    keys('revoke', first.apiKey.slice(0, 20)),
    keys('revoke', second.keyId),
    keys('revoke', 'nothing'),
  ])
  assert.deepEqual([byPublicId.code, byId.code, absent.code], [0, 0, 1])
  assert.equal(absent.stderr, 'There is no key nothing. See gatehouse keys list.\n')
  assert.deepEqual([await status(first.apiKey), await status(second.apiKey)], [401, 401])
})

test('gatehouse keys refuses a time that it cannot read, and the secret stays', async (context) => {
  const folder = await newFolder(context)
  await mkdir(folder)
  const run = createCommandRunner(folder, { DATABASE_URL: t.controlUrl, SERVICE_SECRET: TEST_SECRET }, 'keys')
  const { apiKey, keyId } = await t.key(['*'])
  for (const grace of ['10m', '-5', 'soon', '']) {
    const refused = await run(['rotate', keyId, '--grace', grace])
    assert.equal(refused.code, 2, grace)
    assert.match(refused.stderr, /'--grace <seconds>' .* whole number of seconds, like 3600\./)
  }
  const expiring = await run(['create', 'a', '--rights', '*.read', '--expires', 'tomorrow'])
  assert.equal(expiring.code, 2)
  assert.match(expiring.stderr, /'--expires <date>' argument 'tomorrow' .* like 2026-05-01/)
  const fetched = await actor(t.url, { apikey: apiKey }).post('/gateway/fetch', { table_name: 'users' })
  assert.equal(fetched.body.code, 'missing_client_header', 'the key is valid')
})
