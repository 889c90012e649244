import assert from 'node:assert/strict'
import { test } from 'node:test'
import { load } from '#test/configuration.ts'
import { defaultConfig, listSettings } from './config.ts'

const MARKED = 'marked-secret-0123456789'

test('each setting is listed with its value, default and source', () => {
  const config = load({
    yaml: 'server:\n  workers: 3\nauth:\n  trusted_origins: [https://a.example, https://b.example]\n',
    env: { SERVICE_SESSION__EXPIRES_IN: '12h', DATABASE_URL: `postgres://gate:${MARKED}@db/x` },
    options: [{ option: '--port', setting: 'server.port', text: '9000' }],
  })
  const all = new Map(listSettings(config).map((one) => [one.setting, one]))
  const shown = (setting: string) => {
    const { value, default: usual, absent, source, isSecret } = all.get(setting) ?? assert.fail(setting)
    return [value, usual ?? absent, source, isSecret]
  }
  assert.deepEqual(shown('server.workers'), ['3', '1', 'gatehouse.yaml:2', false])
  assert.deepEqual(shown('auth.trusted_origins'), [
    'https://a.example, https://b.example',
    'none',
    'gatehouse.yaml:4',
    false,
  ])
  assert.deepEqual(shown('session.expires_in'), ['12h', '7d', 'SERVICE_SESSION__EXPIRES_IN', false])
  assert.deepEqual(shown('server.port'), ['9000', '8080', '--port', false])
  assert.deepEqual(shown('database.migrate'), ['true', 'true', 'default', false])
  const [url, , source, isSecret] = shown('database.url')
  assert.deepEqual([url, source, isSecret], ['postgres://gate:***@db/x', 'DATABASE_URL', true])
})

test('settings under names of the operator, and in lists of sections, are listed one by one', () => {
  const issuers = `[{ issuer: https://one.example, audience: app, jwks_url: https://one.example/${MARKED} }]`
  const config = load({
    yaml: `clients:\n  shop:\n    url: postgres://shop:${MARKED}@db/shop\n    row_level_security: { enabled: true, issuers: ${issuers} }\n`,
    env: { SERVICE_CLIENTS__SHOP__MAX_CONNECTIONS: '7' },
  })
  const all = listSettings(config).filter(({ setting }) => setting.startsWith('clients.shop.'))
  const of = (name: string) => all.find(({ setting }) => setting === `clients.shop.${name}`)
  assert.deepEqual(
    [of('max_connections')?.value, of('max_connections')?.source],
    ['7', 'SERVICE_CLIENTS__SHOP__MAX_CONNECTIONS'],
  )
  assert.equal(of('url')?.source, 'gatehouse.yaml:3')
  const issuer = of('row_level_security.issuers[0].issuer')
  assert.deepEqual([issuer?.value, issuer?.source], ['https://one.example', 'gatehouse.yaml:4'])
  assert.ok(!JSON.stringify(all).includes(MARKED), JSON.stringify(all))
})

test('without a file and variables every setting is listed as a default, each once', () => {
  const all = listSettings(defaultConfig())
  assert.deepEqual([...new Set(all.map(({ source }) => source))], ['default'])
  assert.equal(new Set(all.map(({ setting }) => setting)).size, all.length)
  assert.ok(all.length > 150, `${all.length}`)
})
