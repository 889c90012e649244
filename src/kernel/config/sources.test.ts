// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of the file
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import Type from 'typebox'
import Value from 'typebox/value'
import { stringify } from 'yaml'
import { load, type Trial, withoutSources } from '#test/configuration.ts'
import { type Config, ConfigError, settings } from './config.ts'
import { variableOf } from './environment.ts'
import { ANY_NAME, isInList, outline } from './outline.ts'
import { isSetting, type Setting } from './setting.ts'

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
const port = fc.integer({ min: 1, max: 65_535 })
const url = (scheme: string) =>
  fc.tuple(word, word, word, port).map(([u, p, h, n]) => `${scheme}://${u}:${p}@${h}:${n}/d`)

/** Valid values as texts, by the name of the form. */
const texts: Record<string, fc.Arbitrary<string>> = {
  text: fc.string({ minLength: 1, maxLength: 20 }).filter((text) => !/\p{Cc}/u.test(text)),
  host: fc.constantFrom('127.0.0.1', '::', 'localhost', 'a-b.example'),
  origin: fc
    .tuple(fc.constantFrom('http', 'https'), word, port)
    .map(([s, h, p]) => `${s}://${h}.example:${p}`),
  network: fc.constantFrom('10.0.0.0/8', '192.0.2.1', 'fd00::/8', '::1'),
  path: fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => `/${words.join('/')}`),
  mailbox: fc.constantFrom('a@b.example', 'A B <a@b.example>'),
  // Not `__`: browsers have conditions for names that begin with it.
  'cookie name': fc.stringMatching(/^[!#$%&'*+\-.^`|~0-9A-Za-z][!#$%&'*+\-.^_`|~0-9A-Za-z]{0,19}$/),
  // With an underscore, so that it differs from the role in a client's URL.
  role: fc.stringMatching(/^[a-z]{3}_[a-z0-9_]{1,16}$/),
  'host pattern': fc.constantFrom('db.example.com:8443', '*.example.com'),
  // Too short for `custom_supabase`, which is not allowed.
  'client name': fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,12}$/),
  'Postgres URL': url('postgres'),
  'database URL': url('postgres'),
  'SMTP URL': url('smtps'),
  'service URL': fc.tuple(word, port, word).map(([h, n, p]) => `https://${h}.example:${n}/${p}`),
  'web address': fc.tuple(word, port, word).map(([h, n, p]) => `http://${h}.example:${n}/${p}?a=b#c`),
  name: fc.stringMatching(/^[A-Za-z&' ]{0,20}[A-Za-z]$/),
  'score, 0 to 1': fc.constantFrom('0', '0.5', '0.75', '1'),
  colour: fc.constantFrom('#0a7', '#1D4ED8', 'rgb(1, 2, 3)', 'hsl(120 50% 50%)'),
  'role name': fc.stringMatching(/^[a-z][a-z0-9_-]{6,12}$/),
  'user id': fc.uuid(),
  domain: fc.constantFrom('example.com', 'app.example.com'),
  'provider name': fc.stringMatching(/^[a-z][a-z0-9_-]{0,12}$/),
  // Never that of other tokens, whose audience a template may not have.
  audience: fc.uuid(),
  'signing secret': fc
    .uint8Array({ minLength: 24, maxLength: 64 })
    .map((bytes) => `whsec_${Buffer.from(bytes).toString('base64')}`),
  'client id': fc.constantFrom('1-a.apps.example.com', 'com.example.app'),
  scope: fc.constantFrom('openid', 'user:email', 'https://example.com/auth/drive.file'),
  'private key': fc.constant('-----BEGIN PRIVATE KEY-----\\nAAAA\\n-----END PRIVATE KEY-----'),
  right: fc.constantFrom('orders.read', 'gateway.query', '*'),
  'folder or bucket': fc.constantFrom('backups', '/srv/backups', 's3://backups/daily'),
  'cron expression': fc.constantFrom('30 3 * * *', '*/5 0-6 1,15 * 1-5'),
  value: fc.constantFrom('free', 'Pro plan', "a'b"),
  'true or false': fc.constantFrom('true', 'false', 'yes', 'off', '1'),
}

function written(setting: Setting): fc.Arbitrary<string | string[]> {
  if (Type.IsArray(setting)) return fc.uniqueArray(textOf(setting), { maxLength: 3 })
  return textOf(setting)
}

function textOf(setting: Setting): fc.Arbitrary<string> {
  if (Type.IsEnum(setting)) return fc.constantFrom(...setting.enum.map(String))
  const { name } = setting.form
  // The form of a choice is named after its words.
  if (Type.IsArray(setting)) return texts[name] ?? fc.constantFrom(...name.split(', '))
  if (!Type.IsInteger(setting)) return texts[name] ?? assert.fail(`no values for ${name}`)
  const { min, max } = bounds(setting)
  return fc.integer({ min, max }).map((value) => String(setting.form.write(value)))
}

// The schemas of integers have their range under JSON Schema's names.
const bounds = (schema: object) => {
  const { minimum, maximum } = schema as { minimum: number; maximum: number }
  return { min: minimum, max: maximum }
}

type SettingValue = { readonly path: string; readonly value: string | string[] }

const CLIENTS = ['one', 'two_b']

/** Fields of users have no underscore. */
const isNameAt = (path: readonly string[]) => (name: string) => path[2] !== 'fields' || name === 'one'

/** Settings without which a client, a template, a hook or a provider is refused. */
const ALWAYS =
  /^clients\..*\.url$|^auth\.jwt\.templates\..*\.audience$|^auth\.hooks\..*\.(url|secret|on)$|^auth\.social\.providers\..*\.(client_id|issuer|(authorization|token|userinfo)_url)$/

/** Any choice of settings with valid values; most choices contain a conflict. Clients have a URL of PostgreSQL. */
const given: fc.Arbitrary<SettingValue[]> = fc.subarray(CLIENTS).chain((clients) => {
  const arbitraries = outline(settings).flatMap(({ path, schema }) => {
    // The environment sets a list of sections as a whole (issuer-rules.test.ts).
    if (!isSetting(schema) || isInList(path)) return []
    const names = path.includes(ANY_NAME) ? clients.filter(isNameAt(path)) : [ANY_NAME]
    return names.map((name) => {
      const at = path.join('.').replaceAll(ANY_NAME, name)
      const values = path.at(-1) === 'driver' ? fc.constant('postgresql') : written(schema)
      const one = values.map((value): SettingValue => ({ path: at, value }))
      return ALWAYS.test(at) ? one : fc.option(one, { nil: undefined, freq: 2 })
    })
  })
  return fc.tuple(...arbitraries).map((all) => all.filter((one) => one !== undefined))
})

/** A setting, another setting that it needs (`rules.ts`), and values of the latter that fit every value of the former. */
const NEEDS: readonly (readonly [setting: string, needed: string, values: fc.Arbitrary<string>])[] = [
  ['auth.hide_registered_emails', 'auth.email_password.require_email_verification', fc.constant('yes')],
  ['session.cookie_same_site', 'session.cookie_secure', fc.constant('true')],
  ...['limits.bodies', 'limits.body', 'limits.body_bulk'].map(
    (setting) => [setting, 'limits.bodies', fc.constantFrom('8GiB', '9000MiB', '1024GiB')] as const,
  ),
  ['database.direct_url', 'database.url', url('postgres')],
  ['mail.transport', 'mail.smtp_url', url('smtps')],
  ['auth.captcha.provider', 'auth.captcha.secret', word],
  ['server.drain', 'limits.shutdown', fc.constant('1h')],
  ['backups.location', 'backups.s3.endpoint', fc.constant('https://s3.example.com')],
  ...['access_key_id', 'secret_key'].map((name) => ['backups.location', `backups.s3.${name}`, word] as const),
  ...(['values', 'unique'] as const).map(
    (name) => [`auth.user.fields.one.${name}`, 'auth.user.fields.one.type', fc.constant('string')] as const,
  ),
  ['auth.user.fields.one.required', 'auth.user.fields.one.input', fc.constant('true')],
  ...CLIENTS.flatMap((name) => [
    [`clients.${name}.sql_role.name`, `clients.${name}.sql_role.password`, word] as const,
    [`clients.${name}.sql_role.password`, `clients.${name}.sql_role.name`, fc.constant('sql_role')] as const,
    // Points that need no other setting.
    [`auth.hooks.${name}.url`, `auth.hooks.${name}.on`, fc.constantFrom('sign_in', 'sign_up')] as const,
    [`auth.hooks.${name}.url`, 'limits.timeout', fc.constantFrom('21s', '1h')] as const,
    [`auth.social.providers.${name}.issuer`, 'outbound.allow_http', fc.constant('true')] as const,
  ]),
]

/** Any choice of settings without a conflict. */
const agreeing: fc.Arbitrary<SettingValue[]> = fc
  .tuple(given, fc.tuple(...NEEDS.map(([, , values]) => values)))
  .map(([given, needed]) => {
    const values = new Map(given.map(({ path, value }) => [path, value]))
    NEEDS.forEach(([setting, other], i) => {
      if (values.has(setting)) values.set(other, needed[i] ?? '')
    })
    // It depends on all the others of its field (field-rules.test.ts).
    values.delete('auth.user.fields.one.default')
    return [...values].map(([path, value]) => ({ path, value }))
  })

function asFile(given: readonly SettingValue[]): Trial {
  const root: Tree = {}
  for (const { path, value } of given) {
    const names = path.split('.')
    const last = names.pop() ?? ''
    let section = root
    for (const name of names) {
      section[name] ??= {}
      // Every name of a path but the last is a section.
      section = section[name] as Tree
    }
    section[last] = Array.isArray(value) ? value.map(escaped) : escaped(value)
  }
  return { yaml: stringify(root, { defaultStringType: 'QUOTE_DOUBLE', lineWidth: 0 }) }
}

type Tree = { [name: string]: unknown }

// A function, because `$$` in a replacement text means one dollar.
const escaped = (text: string) => text.replaceAll('${', () => '$${')

function asEnvironment(given: readonly SettingValue[]): Trial {
  const variables = given.map(({ path, value }, i) => {
    // An empty variable counts as absent, so the empty list has only the JSON form.
    const plain = i % 2 && value.length > 0
    const text = Array.isArray(value) ? (plain ? value.join(',') : JSON.stringify(value)) : value
    return [variableOf(path), text] as const
  })
  return { env: Object.fromEntries(variables) }
}

/** The configuration, or the problems by setting. */
function outcome(trial: Trial): Config | string[] {
  try {
    return withoutSources(load(trial))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ setting, says }) => `${setting}: ${says}`).sort()
  }
}

test('any settings mean the same through the environment as through the file, also when they are refused', () => {
  const property = fc.property(given, (given) => {
    assert.deepEqual(outcome(asEnvironment(given)), outcome(asFile(given)))
  })
  fc.assert(property, { numRuns: 75 })
})

test('settings that agree are accepted, the same from the environment as from the file', () => {
  const property = fc.property(agreeing, (given) => {
    const fromFile = load(asFile(given))
    assert.deepEqual(withoutSources(load(asEnvironment(given))), withoutSources(fromFile))
    const { production: _, builtInClient: __, sources: ___, ...config } = fromFile
    assert.deepEqual([...Value.Errors(settings, config)], [])
  })
  fc.assert(property, { numRuns: 75 })
})
