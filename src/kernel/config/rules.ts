import { clientUrlForms, driversTaking, takes } from './addresses.ts'
import { cookieRules } from './cookie-rules.ts'
import { fieldRules } from './field-rules.ts'
import { hookRules } from './hook-rules.ts'
import { issuerRules } from './issuer-rules.ts'
import type { Problem } from './problems.ts'
import type { Rule } from './rule.ts'
import { readS3Location } from './sections/backups.ts'
import { BUILT_IN_CLIENT } from './sections/database.ts'
import type { Config } from './settings.ts'
import { type Tree, treeAt } from './tree.ts'

/** A body takes about three times its length while it is processed, and one caller may use half of the budget. */
const BODIES_AT_LEAST = 8

const RULES: readonly Rule[] = [
  {
    settings: ['auth.hide_registered_emails', 'auth.email_password.require_email_verification'],
    broken: ({ auth }) => auth.hide_registered_emails && !auth.email_password.require_email_verification,
    says: 'needs auth.email_password.require_email_verification: true, otherwise sign-in right after sign-up shows who is registered',
  },
  {
    settings: ['auth.email_password.breach_check_url', 'outbound.allow_http'],
    broken: ({ auth, outbound }) =>
      auth.email_password.breach_check_url?.startsWith('http:') === true && !outbound.allow_http,
    says: 'needs https, or outbound.allow_http: true',
  },
  {
    settings: ['auth.captcha.provider', 'auth.captcha.secret'],
    broken: ({ auth: { captcha } }) =>
      captcha.provider !== undefined && captcha.provider !== 'altcha' && captcha.secret === undefined,
    says: 'needs auth.captcha.secret, the secret key that the provider shows beside the site key',
  },
  {
    settings: ['auth.captcha.verify_url', 'outbound.allow_http'],
    broken: ({ auth, outbound }) =>
      auth.captcha.verify_url?.startsWith('http:') === true && !outbound.allow_http,
    says: 'needs https, or outbound.allow_http: true',
  },
  {
    settings: ['session.cookie_same_site', 'session.cookie_secure'],
    broken: ({ session }) => session.cookie_same_site === 'None' && !session.cookie_secure,
    says: 'None forces Secure, which session.cookie_secure: false turns off; remove that line, or use Lax',
  },
  {
    settings: ['limits.bodies', 'limits.body', 'limits.body_bulk'],
    broken: ({ limits }) => limits.bodies < BODIES_AT_LEAST * Math.max(limits.body, limits.body_bulk),
    says: `needs ${BODIES_AT_LEAST} times limits.body and limits.body_bulk, else one body is more than its share`,
  },
  {
    settings: ['database.direct_url', 'database.url'],
    broken: ({ database }) => database.direct_url !== undefined && database.url === undefined,
    says: 'needs database.url: the address of the pooler',
  },
  {
    settings: ['server.drain', 'limits.shutdown'],
    broken: ({ server, limits }) => 2 * (server.drain ?? 0) > limits.shutdown,
    says: 'must be at most half of limits.shutdown, since requests and jobs finish after it',
  },
  {
    settings: ['mail.transport', 'mail.smtp_url'],
    broken: ({ mail }) => mail.transport === 'smtp' && mail.smtp_url === undefined,
    says: 'smtp needs mail.smtp_url, like smtps://user:password@mail.example.com:465',
  },
]

/** The gateway tells its own tokens by their audience. */
const tokenRules = ({ auth: { jwt }, server }: Config): Rule[] =>
  Object.entries(jwt.templates).map(([name, { audience }]) => ({
    settings: [`auth.jwt.templates.${name}.audience`],
    broken: () => audience === (jwt.audience ?? server.public_url),
    says: 'must differ from auth.jwt.audience (default: server.public_url), whose tokens the gateway accepts',
  }))

const BUCKET_SETTINGS = ['endpoint', 'access_key_id', 'secret_key'] as const

const backupRules = ({ backups: { location, s3 } }: Config): Rule[] =>
  BUCKET_SETTINGS.map((setting) => ({
    settings: ['backups.location', `backups.s3.${setting}`],
    broken: () => readS3Location(location ?? '') !== undefined && s3[setting] === undefined,
    says: `a bucket needs backups.s3.${setting}; or name a folder`,
  }))

const clientRules = ({ clients, gateway }: Config): Rule[] =>
  Object.entries(clients).flatMap(([name, { driver, url, direct_url, row_level_security, sql_role }]) => [
    {
      settings: [`clients.${name}.url`, `clients.${name}.driver`, `clients.${name}`],
      broken: () => url === undefined && !(name === BUILT_IN_CLIENT && takes(driver, 'built_in')),
      says: `is required: ${clientUrlForms[driver].allowed}`,
    },
    {
      settings: [`clients.${name}.url`, `clients.${name}.driver`, `clients.${name}`],
      broken: () => url !== undefined && clientUrlForms[driver].parse(url) === undefined,
      says: `must be ${clientUrlForms[driver].allowed} (clients.${name}.driver is ${driver})`,
    },
    {
      settings: [`clients.${name}.direct_url`, `clients.${name}.driver`, `clients.${name}`],
      broken: () => direct_url !== undefined && !takes(driver, 'direct_url'),
      says: `needs a client of driver ${driversTaking('direct_url')} (clients.${name}.driver is ${driver})`,
    },
    {
      settings: [`clients.${name}.direct_url`, `clients.${name}.url`, `clients.${name}`],
      broken: () => direct_url !== undefined && url === undefined,
      says: `needs clients.${name}.url: the address of the pooler`,
    },
    {
      settings: [`clients.${name}.direct_url`],
      broken: () =>
        direct_url !== undefined &&
        takes(driver, 'direct_url') &&
        clientUrlForms[driver].parse(direct_url) === undefined,
      says: `must be ${clientUrlForms[driver].allowed}`,
    },
    {
      settings: [`clients.${name}.row_level_security.enabled`, `clients.${name}.driver`, `clients.${name}`],
      broken: () => row_level_security.enabled === true && !takes(driver, 'row_level_security'),
      says: `needs a client of driver ${driversTaking('row_level_security')} (clients.${name}.driver is ${driver})`,
    },
    {
      settings: [`clients.${name}.sql_role.name`, `clients.${name}.driver`, `clients.${name}`],
      broken: () => sql_role.name !== undefined && !takes(driver, 'sql_role'),
      says: `needs a client of driver ${driversTaking('sql_role')} (clients.${name}.driver is ${driver})`,
    },
    {
      settings: [`clients.${name}.sql_role.name`, `clients.${name}.url`, `clients.${name}`],
      broken: () =>
        sql_role.name !== undefined && encodeURIComponent(sql_role.name) === URL.parse(url ?? '')?.username,
      says: `is the role of clients.${name}.url; name another one that is no member of it`,
    },
    {
      settings: [
        `clients.${name}.sql_role`,
        `clients.${name}.sql_role.name`,
        `clients.${name}.sql_role.password`,
      ],
      broken: () => (sql_role.name === undefined) !== (sql_role.password === undefined),
      says: 'needs both name and password',
    },
    {
      settings: [`clients.${name}.driver`, 'gateway.logging_client', `clients.${name}`],
      broken: () => name === gateway.logging_client && !takes(driver, 'logging'),
      says: `must be ${driversTaking('logging')}: gateway.logging_client keeps its tables there`,
    },
  ])

/** Addresses of a tenant that all directories of Microsoft share: each of them names the addresses of its users as it likes. */
const SHARED_TENANT =
  /^https:\/\/login\.(microsoftonline\.com|microsoftonline\.us|partner\.microsoftonline\.cn)\/(common|organizations|consumers)(\/|$)/i

/** The setting that names such a tenant, also of a provider that is configured by its addresses. */
function sharedTenantOf(
  name: string,
  { type, tenant, ...provider }: Config['auth']['social']['providers'][string],
): string | undefined {
  const isBuiltIn = name === 'microsoft' && type === 'built_in' && provider.issuer === undefined
  if (isBuiltIn)
    return SHARED_TENANT.test(`https://login.microsoftonline.com/${tenant}`)
      ? `tenant is ${tenant}`
      : undefined
  const shared = (['issuer', 'authorization_url'] as const).find((setting) =>
    SHARED_TENANT.test(provider[setting] ?? ''),
  )
  return shared && `${shared} is ${provider[shared]}`
}

const providerRules = ({ auth: { social }, outbound }: Config): Rule[] =>
  Object.entries(social.providers).flatMap(([name, provider]) => {
    const at = `auth.social.providers.${name}`
    const isMissing = (value: string | undefined, type: string) =>
      provider.type === type && value === undefined
    const isPlain = (url: string | undefined) => url?.startsWith('http:') === true && !outbound.allow_http
    const required = {
      issuer: 'oidc',
      authorization_url: 'oauth2',
      token_url: 'oauth2',
      userinfo_url: 'oauth2',
    }
    const urls = ['issuer', 'authorization_url', 'token_url', 'userinfo_url'] as const
    return [
      {
        settings: [`${at}.client_id`, at],
        broken: () => provider.client_id === undefined,
        says: 'is required: the client id that the provider has given out',
      },
      ...urls.flatMap((setting) => [
        {
          settings: [`${at}.${setting}`, `${at}.type`, at],
          broken: () => isMissing(provider[setting], required[setting]),
          says: `is required (${at}.type is ${provider.type})`,
        },
        {
          settings: [`${at}.${setting}`, 'outbound.allow_http', at],
          broken: () => isPlain(provider[setting]),
          says: 'needs https, or outbound.allow_http: true',
        },
      ]),
      {
        settings: ['auth.social.linking.trusted_providers', `${at}.tenant`, at],
        broken: () =>
          sharedTenantOf(name, provider) !== undefined && social.linking.trusted_providers.includes(name),
        says: `must not name ${name} while ${at}.${sharedTenantOf(name, provider)}: any directory can name any address; name your own tenant by its id`,
      },
    ]
  })

/** A rule is skipped when one of its settings is invalid: it would be applied to the default. */
export function brokenRules(config: Config, tree: Tree, problems: readonly Problem[]): Problem[] {
  const wrong = new Set(problems.map(({ setting }) => setting))
  return [
    ...RULES,
    ...backupRules(config),
    ...clientRules(config),
    ...cookieRules(config),
    ...fieldRules(config),
    ...hookRules(config),
    ...issuerRules(config),
    ...providerRules(config),
    ...tokenRules(config),
  ]
    .filter((rule) => !rule.settings.some((setting) => wrong.has(setting)) && rule.broken(config))
    .map(({ settings, says }) => {
      const [setting = ''] = settings
      return { ...placeOf(tree, setting), setting, says }
    })
}

/** The place of a setting, or of its section when the setting is missing. */
function placeOf(tree: Tree, setting: string): Tree['place'] {
  const path = setting.replaceAll(/\[(\d+)\]/g, '.$1').split('.')
  const found = path.map((_, left) => treeAt(tree, path.slice(0, path.length - left)))
  return (found.find((inner) => inner !== undefined) ?? tree).place
}
