// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of the file
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
import { describe, test } from 'node:test'
import Value from 'typebox/value'
import { complaints, load } from '#test/configuration.ts'
import { createBlockList } from './addresses.ts'
import { defaultConfig, settings } from './config.ts'

describe('without a file and without variables', () => {
  test('the defaults of the specification hold', () => {
    const { server, session, auth, clients, limits, rate_limits, mail, production } = load({})
    assert.deepEqual([server.host, server.port, server.public_url], ['127.0.0.1', 8080, undefined])
    assert.equal(session.expires_in, 7 * 24 * 3600 * 1000)
    assert.equal(session.cookie_name, 'service-auth.session-token')
    assert.equal(auth.password.concurrency, Math.max(1, availableParallelism() - 1))
    assert.deepEqual(Object.keys(clients), [])
    assert.deepEqual([limits.body, limits.header, limits.shutdown], [1_048_576, 16_384, 25_000])
    assert.deepEqual(rate_limits.rules.sign_in_account, { requests: 10, window: 900_000 })
    assert.deepEqual([rate_limits.enabled, mail.transport, production], [false, 'outbox', false])
  })

  test('every default is accepted by its own schema and form', () => {
    const { production: _, builtInClient: __, sources: ___, ...config } = load({})
    assert.deepEqual([...Value.Errors(settings, config)], [])
  })

  test('defaultConfig returns the same, and derived defaults follow its overrides', () => {
    assert.deepEqual(defaultConfig(), load({}))
    const config = defaultConfig({
      production: true,
      auth: { email_password: { require_email_verification: true } },
    })
    assert.deepEqual([config.rate_limits.enabled, config.auth.email.send_on_sign_up], [true, true])
    assert.equal(config.auth.email_password.password_min_length, 8)
  })
})

describe('the file', () => {
  test('durations become milliseconds and sizes bytes', () => {
    const { session, limits } = load({
      yaml: 'session: { expires_in: 12h }\nlimits: { body: 512KiB, timeout: 500ms }',
    })
    assert.deepEqual([session.expires_in, limits.body, limits.timeout], [43_200_000, 524_288, 500])
  })

  test('an empty section or value has its defaults', () => {
    assert.deepEqual(load({ yaml: 'server:\nsession:\n  expires_in:\nclients: ~\n' }), defaultConfig())
    assert.deepEqual(load({ yaml: '# nothing yet\n' }), defaultConfig())
  })

  test('a rate limit given in part has the rest of its default', () => {
    const { rules } = load({ yaml: 'rate_limits: { rules: { sign_in: { requests: 3 } } }' }).rate_limits
    assert.deepEqual(rules.sign_in, { requests: 3, window: 60_000 })
    assert.deepEqual(rules.default, { requests: 100, window: 10_000 })
  })

  test('a client keeps the spelling of its name and has the defaults of a client', () => {
    const { clients } = load({
      yaml: 'clients: { Reports_2: { url: postgresql://r@db/reports?sslmode=require } }',
    })
    assert.equal(clients.Reports_2?.url, 'postgresql://r@db/reports?sslmode=require')
    assert.deepEqual([clients.Reports_2?.driver, clients.Reports_2?.connect_timeout], ['postgresql', 5000])
    assert.equal(clients.Reports_2?.enforce_api_keys, undefined)
  })

  test('names that every JavaScript object has are not clients', () => {
    const { clients } = load({ yaml: 'clients: { a: { url: postgres://db/a } }' })
    assert.equal(clients.constructor, undefined)
    assert.equal(clients.toString, undefined)
  })

  test('digits in a text setting are not changed', () => {
    assert.equal(load({ yaml: 'metrics: { token: 007 }' }).metrics.token, '007')
  })

  test('${NAME} is replaced before the value is read, once, and $${ stands for itself', () => {
    const yaml =
      'server: { port: "${PORT}" }\nmetrics: { token: "a${A}$${A}" }\nauth:\n  trusted_origins: ${ORIGINS}\n'
    const env = { PORT: '90', A: '${PORT}', ORIGINS: 'https://a.example, https://b.example:8443/' }
    const { server, metrics, auth } = load({ yaml, env })
    assert.equal(server.port, 90)
    assert.equal(metrics.token, 'a${PORT}${A}')
    assert.deepEqual(auth.trusted_origins, ['https://a.example', 'https://b.example:8443'])
  })

  test('an anchored value can be used again', () => {
    const yaml = 'session: { update_age: &day 1d, fresh_age: *day, expires_in: 2d }'
    assert.equal(load({ yaml }).session.fresh_age, 86_400_000)
  })

  test('--config beats SERVICE_CONFIG, which beats gatehouse.yaml', () => {
    const files = { 'a/one.yaml': 'server: { port: 1 }', 'two.yaml': 'server: { port: 2 }' }
    const yaml = 'server: { port: 3 }'
    assert.equal(
      load({ yaml, files, file: 'a/one.yaml', env: { SERVICE_CONFIG: 'two.yaml' } }).server.port,
      1,
    )
    assert.equal(load({ yaml, files, env: { SERVICE_CONFIG: 'two.yaml' } }).server.port, 2)
    assert.equal(load({ yaml, files, env: { SERVICE_CONFIG: '' } }).server.port, 3)
  })
})

describe('the environment', () => {
  test('a variable beats the file, setting by setting', () => {
    const yaml = 'session: { expires_in: 1h, update_age: 2h }\nauth: { trusted_origins: [https://a.example] }'
    const env = { SERVICE_SESSION__EXPIRES_IN: '12h', SERVICE_AUTH__TRUSTED_ORIGINS: '["https://b.example"]' }
    const { session, auth } = load({ yaml, env })
    assert.deepEqual([session.expires_in, session.update_age], [43_200_000, 7_200_000])
    assert.deepEqual(auth.trusted_origins, ['https://b.example'])
  })

  test('DATABASE_URL beats the file and SERVICE_DATABASE__URL beats both', () => {
    const yaml = 'database: { url: postgres://file/a }'
    const env = { DATABASE_URL: 'postgres://alias/a' }
    assert.equal(load({ yaml, env }).database.url, 'postgres://alias/a')
    const both = { SERVICE_DATABASE__URL: 'postgres://exact/a', ...env }
    assert.equal(load({ yaml, env: both }).database.url, 'postgres://exact/a')
  })

  test('client names are lower-case from variables, and as spelled from JSON; the more specific variable wins', () => {
    const env = {
      SERVICE_CLIENTS__REPORTS__URL: 'postgres://db/exact',
      SERVICE_CLIENTS:
        '{"reports":{"url":"postgres://db/json","max_connections":3},"Other":{"url":"postgres://db/o"}}',
    }
    const { clients } = load({ env })
    assert.deepEqual([clients.reports?.url, clients.reports?.max_connections], ['postgres://db/exact', 3])
    assert.equal(clients.Other?.url, 'postgres://db/o')
  })

  test('an empty variable counts as absent, and variables of other programs are ignored', () => {
    const env = {
      SERVICE_SERVER__PORT: '',
      SERVICE_PORT: 'x',
      SERVICE_SECRET: 'x',
      SERVICE_KEY_12: 'x',
      PATH: '/bin',
    }
    assert.deepEqual(load({ env }), defaultConfig())
  })

  test('an empty DATABASE_URL is a mistake, unless another place names the server', () => {
    const says =
      'is set and empty: name the server, or remove the variable to use the embedded PostgreSQL in server.data_dir'
    const [own, other] = [{ DATABASE_URL: '' }, { SERVICE_DATABASE__URL: '' }]
    assert.deepEqual(complaints({ env: own }), [`DATABASE_URL database.url: ${says}`])
    assert.deepEqual(complaints({ env: other }), [`SERVICE_DATABASE__URL database.url: ${says}`])
    const url = 'postgres://db/app'
    assert.equal(load({ env: { ...own, SERVICE_DATABASE__URL: url } }).database.url, url)
    assert.equal(load({ env: { ...other, DATABASE_URL: url } }).database.url, url)
    assert.equal(load({ env: own, yaml: `database: { url: "${url}" }` }).database.url, url)
  })

  test('booleans have every usual spelling', () => {
    const read = (text: string) => load({ env: { SERVICE_OUTBOUND__ALLOW_HTTP: text } }).outbound.allow_http
    assert.deepEqual(['true', '1', 'YES', 'on'].map(read), [true, true, true, true])
    assert.deepEqual(['false', '0', 'no', 'Off'].map(read), [false, false, false, false])
  })

  test('in production rate limits apply unless they are switched off', () => {
    const production = load({ env: { NODE_ENV: 'production' } })
    assert.deepEqual([production.production, production.rate_limits.enabled], [true, true])
    const env = { NODE_ENV: 'production', SERVICE_RATE_LIMITS__ENABLED: 'false' }
    assert.equal(load({ env }).rate_limits.enabled, false)
  })
})

test('only the built-in client may have settings without a URL, or be switched off', () => {
  const { clients, builtInClient } = load({ yaml: 'clients: { default: { max_connections: 3 } }' })
  assert.deepEqual(
    [clients.default?.max_connections, clients.default?.url, builtInClient],
    [3, undefined, true],
  )
  const off = load({
    yaml: 'clients: { default: { max_connections: 3 } }',
    env: { SERVICE_CLIENTS__DEFAULT: 'false' },
  })
  assert.deepEqual([off.clients, off.builtInClient], [load({}).clients, false])
  assert.match(
    complaints({ yaml: 'clients: { other: false }' })[0] ?? '',
    /clients\.other: must be a section/,
  )
  assert.match(
    complaints({ yaml: 'clients: { default: { driver: supabase } }' })[0] ?? '',
    /clients\.default\.url: is required: .*Supabase|clients\.default\.url: is required: a URL like https/,
  )
})

test('addresses are normalised: origins as browsers write them, networks for a block list', () => {
  const yaml =
    'server: { public_url: HTTPS://Auth.Example.com:443/, trusted_proxies: [10.0.0.0/8, fd00::/8, 192.0.2.1] }'
  const { server } = load({ yaml })
  assert.equal(server.public_url, 'https://auth.example.com')
  const list = createBlockList(server.trusted_proxies)
  assert.deepEqual(
    ['10.9.8.7', '11.0.0.1', '192.0.2.1', '192.0.2.2'].map((address) => list.check(address)),
    [true, false, true, false],
  )
  assert.equal(list.check('fd12::1', 'ipv6'), true)
})
