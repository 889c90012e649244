import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { complaints, load, withoutSources } from '#test/configuration.ts'
import { defaultConfig, describeConfig, maskedConfig, settings } from './config.ts'
import { outline } from './outline.ts'
import { isSetting } from './setting.ts'
import { maskedUrl } from './show.ts'

/** Too long to occur by chance. */
const secret = fc.stringMatching(/^[A-Za-z0-9!$*_~-]{16,40}$/)

test('no secret is shown', () => {
  fc.assert(
    fc.property(secret, secret, (one, two) => {
      const shown = maskedConfig(
        load({
          env: {
            DATABASE_URL: `postgres://gate:${one}@db/x?password=${two}`,
            SERVICE_CLIENTS__A__URL: `postgresql://gate:${one}@db/x?application_name=a&password=${two}`,
            SERVICE_MAIL__SMTP_URL: `smtps://${one}:${two}@mail.example.com`,
            SERVICE_METRICS__TOKEN: one,
            SERVICE_CLIENTS__A__SQL_ROLE__NAME: 'sql',
            SERVICE_CLIENTS__A__SQL_ROLE__PASSWORD: two,
            SERVICE_CLIENTS__B__DRIVER: 'supabase',
            SERVICE_CLIENTS__B__URL: `https://:${one}@project.example/rest/${two}`,
            SERVICE_AUTH__EMAIL_PASSWORD__BREACH_CHECK_URL: `https://hashes.example/${one}/range`,
          },
        }),
      )
      for (const text of [JSON.stringify(shown), stringify(shown)]) {
        assert.ok(!text.includes(one) && !text.includes(two), text)
        assert.ok(text.includes('postgres://gate:***@db/x'), text)
      }
    }),
    { numRuns: 100 },
  )
})

test('no message repeats a secret', () => {
  fc.assert(
    fc.property(secret, (one) => {
      const lines = complaints({
        yaml: `metrics: [${JSON.stringify(one)}]\nunknown: ${JSON.stringify(one)}\nclients: { a: { url: "${one}" } }\n`,
        env: {
          DATABASE_URL: `postgres://gate:${one}#x@db/x`,
          SERVICE_MAIL__SMTP_URL: `http://${one}@mail`,
          SERVICE_METRICS__TOKEN: `${one}\n`,
          SERVICE_CLIENTS__B: one,
        },
      })
      assert.ok(lines.length >= 6, lines.join('\n'))
      assert.ok(!lines.join('\n').includes(one), lines.join('\n'))
    }),
    { numRuns: 100 },
  )
})

test('every setting whose name sounds like a secret is one', () => {
  const open = outline(settings).filter(
    ({ path, schema }) =>
      isSetting(schema) && !schema.secret && /token|secret|password$|url$|_key$/.test(path.at(-1) ?? ''),
  )
  assert.deepEqual(
    open.map(({ path }) => path.join('.')),
    [
      'server.public_url',
      'auth.pages.logo_url',
      'auth.two_factor.page_url',
      'auth.captcha.site_key',
      'auth.device.page_url',
    ],
  )
})

test('the parts of a URL that could be a key are masked, and the address is shown', () => {
  const shown: Readonly<Record<string, string>> = {
    'postgres://gate:secret@db:5432/gatehouse_production?sslmode=require':
      'postgres://gate:***@db:5432/gatehouse_production?***',
    'postgres://gate@db/x': 'postgres://gate@db/x',
    'https://KEY@project.example/': 'https://***@project.example/',
    'https://project.example/rest/v1/eyJhbGciOiJIUzI1NiJ9/a': 'https://project.example/rest/v1/***/a',
    'https://hashes.example/range#0123456789': 'https://hashes.example/range#***',
    'scylladb://u:secret@one,two:9042/keyspace_of_the_shop':
      'scylladb://u:***@one,two:9042/keyspace_of_the_shop',
    'no url': '***',
  }
  for (const [url, masked] of Object.entries(shown)) assert.equal(maskedUrl(url), masked)
})

test('values are shown as they are written in the file', () => {
  const shown = maskedConfig(
    defaultConfig({ limits: { timeout: 90_000 }, server: { trusted_proxies: ['::1'] } }),
  )
  assert.partialDeepStrictEqual(shown, {
    session: { expires_in: '7d' },
    limits: { timeout: '90s', body: '1MiB' },
    server: { trusted_proxies: ['::1'] },
  })
})

test('the shown configuration can be loaded again', () => {
  const config = load({ yaml: 'session: { expires_in: 36h }\nclients: { a: { url: postgres://db/a } }' })
  const again = load({ yaml: stringify(maskedConfig(config)) })
  assert.deepEqual(withoutSources(again), withoutSources(config))
})

test('every setting is described, with its variable and its default', () => {
  const all = describeConfig()
  const [expiry] = all.filter(({ setting }) => setting === 'session.expires_in')
  assert.equal(expiry?.environment, 'SERVICE_SESSION__EXPIRES_IN')
  assert.deepEqual([expiry?.type, expiry?.default], ['duration, 1s to 3650d', '7d'])
  for (const { setting, type, default: value, absent, description } of all) {
    assert.ok(description.endsWith('.'), setting)
    assert.equal(type === undefined, value === undefined && absent === undefined, setting)
  }
})
