import { hash } from 'node:crypto'
import type { Config } from '../config/config.ts'
import type { Secrets } from '../secrets.ts'
import type { EmbeddedServer } from './embedded.ts'
import type { Standing } from './installation.ts'
import { type Provision, provision } from './provision.ts'

/** Names of the databases and roles next to a control database. Two installations on one server share none of them. */
export type BuiltInNames = {
  /** The database of client `default`, and the role of its callers. */
  readonly default: string
  /** The owner of that database. It cannot log in. */
  readonly owner: string
  /** The database of the log and audit tables, and its owner. */
  readonly logging: string
  /** The role that may only read these tables. */
  readonly reader: string
  /** The roles of callers of client `default` with row-level security (gateway.md 19). */
  readonly anonymous: string
  readonly signedIn: string
  /** The owner of the audit trail in the control database. */
  readonly auditOwner: string
}

export function builtInNames(controlDatabase: string): BuiltInNames {
  const name = shortened(controlDatabase)
  return {
    default: `${name}_default`,
    owner: `${name}_owner`,
    logging: `${name}_logging`,
    reader: `${name}_logging_reader`,
    anonymous: `${name}_anon`,
    signedIn: `${name}_authenticated`,
    auditOwner: `${name}_audit`,
  }
}

/** Bytes. With `_logging_reader` appended, the name has the 63 bytes that PostgreSQL keeps. */
const MAX_NAME_BYTES = 48

function shortened(name: string): string {
  if (Buffer.byteLength(name) <= MAX_NAME_BYTES) return name
  const tail = `_${hash('sha256', name).slice(0, 8)}`
  let head = name
  while (Buffer.byteLength(head) > MAX_NAME_BYTES - tail.length) head = [...head].slice(0, -1).join('')
  return head + tail
}

export type BuiltInDatabases = {
  /** Clients that exist without being configured, by name. */
  readonly builtIn: Readonly<Record<string, string>>
  /** The roles of callers of client `default` with row-level security (gateway.md 19); undefined without that client. */
  readonly callerRoles: { readonly anonymousRole: string; readonly signedInRole: string } | undefined
  /** The database of the log and audit tables, as its owner and as a role that may only read. */
  readonly logging:
    | { readonly ownerUrl: string; readonly readerUrl: string; readonly reader: string }
    | undefined
  /** A sentence for each change of callers to roles and databases that was undone. */
  readonly repairs: readonly string[]
}

/** The built-in databases that this process may use. */
type BuiltIn = {
  readonly default: boolean
  readonly logging: boolean
  /** URL of a role in a database. */
  at(role: string, database: string): string
} & Pick<BuiltInDatabases, 'repairs'>

type EnsureOptions = {
  readonly config: Config
  readonly secrets: Secrets
  readonly report: (step: string) => void
  /** Creates what is missing; otherwise nothing is changed. */
  readonly createsMissing: boolean
  readonly names: BuiltInNames
  readonly standing: Standing
  readonly url: EmbeddedServer['url']
  /** Undefined when the role of the control database may create neither databases nor roles. */
  readonly provisionUrl: string | undefined
}

/** The built-in databases that the configuration wants, created if the command may do that. */
export async function ensureBuiltIn(options: EnsureOptions): Promise<BuiltIn> {
  const { config, createsMissing, names, provisionUrl, report, secrets, standing } = options
  const canProvision = provisionUrl !== undefined
  const age = createsMissing ? 'current' : standing.secret
  const password = (role: string) => secrets.derive('database-role', role, age)
  const built = {
    default: canProvision && wantsDefault(config),
    logging: canProvision && config.clients[config.gateway.logging_client]?.url === undefined,
    at: (role: string, database: string) => options.url(role, password(role), database),
  }
  if (!createsMissing || !canProvision || !(built.default || built.logging)) return { ...built, repairs: [] }
  report('provision')
  const wanted = {
    ...ownDatabases(built, names, password),
    installation: standing.id,
    keepsPasswords: standing.secret === 'current',
  }
  return { ...built, repairs: await provision(provisionUrl, wanted, { report }) }
}

const wantsDefault = (config: Config): boolean =>
  config.builtInClient && config.clients.default?.url === undefined

function ownDatabases(
  { default: hasDefault, logging: hasLogging, at }: Omit<BuiltIn, 'repairs'>,
  names: BuiltInNames,
  password: (role: string) => string,
): Pick<Provision, 'roles' | 'databases' | 'grants'> {
  const login = (name: string, database: string) => ({
    name,
    password: password(name),
    url: at(name, database),
  })
  const { default: user, owner, logging, reader } = names
  const callers = hasDefault ? [names.anonymous, names.signedIn] : []
  return {
    roles: [
      ...(hasDefault ? [login(user, user), { name: owner }] : []),
      ...(hasLogging ? [login(logging, logging), login(reader, logging)] : []),
      ...callers.map((name) => ({ name })),
    ],
    databases: [
      ...(hasDefault ? [{ name: user, owner, user: login(user, user) }] : []),
      ...(hasLogging ? [{ name: logging, owner: logging }] : []),
    ],
    grants: callers.map((role) => ({ role, to: user })),
  }
}

export function builtInDatabases(built: BuiltIn, names: BuiltInNames): BuiltInDatabases {
  const { at, repairs } = built
  return {
    builtIn: built.default ? { default: at(names.default, names.default) } : {},
    callerRoles: built.default ? { anonymousRole: names.anonymous, signedInRole: names.signedIn } : undefined,
    logging: built.logging
      ? {
          ownerUrl: at(names.logging, names.logging),
          readerUrl: at(names.reader, names.logging),
          reader: names.reader,
        }
      : undefined,
    repairs,
  }
}

export function adviceFor(config: Config): string | undefined {
  const missing = [
    ...(wantsDefault(config) ? ['default'] : []),
    ...[config.gateway.logging_client].filter((name) => config.clients[name]?.url === undefined),
  ]
  if (missing.length === 0) return undefined
  const entries = missing.map(
    (name) => `  ${name}:\n    url: postgres://ROLE@HOST/DATABASE   # with its password`,
  )
  return (
    'The role of database.url may not create databases and roles (CREATEDB, CREATEROLE). Give it both, or write into ' +
    `gatehouse.yaml:\nclients:\n${entries.join('\n')}\nUntil then signing in works, and data, pipelines and management answer 503.`
  )
}
