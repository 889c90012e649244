import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { withoutComments } from './source-code.ts'

/** A file of src, with its path relative to src: `kernel/clock.ts`. */
type Source = { readonly file: string; readonly text: string }

/** A rule that every file must keep. */
type Rule = {
  readonly says: string
  /** Whether it is about files of packages too. */
  readonly isGeneral?: true
  readonly complaints: (source: Source) => readonly string[]
  /** Examples that break the rule, to prove that it detects them. Each gets exactly one complaint. */
  readonly wrong: readonly Source[]
  /** Examples that are close to a violation, but keep the rule. */
  readonly right?: readonly Source[]
}

const SRC = new URL('../src/', import.meta.url)
/** A package that is published (decision 76). Its files are named from here: `rows/read.ts`. */
const CLIENT = new URL('../packages/client/src/', import.meta.url)

const sources = (folder = SRC, ending = '.ts'): readonly Source[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => ({ file, text: readFileSync(new URL(file, folder), 'utf8') }))

const isTest = ({ file }: Source): boolean => file.endsWith('.test.ts')

/** The folders that each folder may import (house.md 1). `app` is the files directly in src. */
const FLOORS: Readonly<Record<string, readonly string[]>> = {
  kernel: ['kernel'],
  identity: ['identity', 'kernel'],
  databases: ['databases', 'kernel'],
  auth: ['auth', 'identity', 'kernel'],
  gateway: ['gateway', 'databases', 'identity', 'kernel'],
  console: ['console', 'kernel'],
  startup: ['startup', 'gateway', 'auth', 'databases', 'identity', 'kernel'],
  cli: ['cli', 'app', 'startup', 'gateway', 'auth', 'databases', 'identity', 'kernel'],
  app: ['app', 'cli', 'console', 'startup', 'gateway', 'auth', 'databases', 'identity', 'kernel'],
}

const floorOf = (file: string): string => (file.includes('/') ? (file.split('/')[0] ?? '') : 'app')

/** The floors of `databases/` (house.md 2), highest first. Files directly in the folder (failures.ts) are below all floors. */
const DATABASE_FLOORS = ['clients', 'drivers', 'plan', 'request']
/** The floors of PostgreSQL's driver. Its other files and folders are above them. */
const POSTGRES_FLOORS = ['pool', 'protocol', 'sql']

/** The floor of a file in a folder with floors; 0 is the highest. */
const heightIn = (folder: string, floors: readonly string[], file: string, otherwise: number): number => {
  const floor = floors.indexOf(file.slice(folder.length).split('/')[0] ?? '')
  return floor < 0 ? otherwise : floor
}

/** Imports within the folder that point upwards. Tests are not restricted. */
const upwardIn =
  (folder: string, floors: readonly string[], otherwise: number) =>
  (source: Source): readonly string[] => {
    if (isTest(source) || !source.file.startsWith(folder)) return []
    const from = heightIn(folder, floors, source.file, otherwise)
    return importsOf(source)
      .filter((target) => target.startsWith(folder) && heightIn(folder, floors, target, otherwise) < from)
      .map((target) => `${target} is on a higher floor`)
  }

const upwardInDatabases = upwardIn('databases/', DATABASE_FLOORS, DATABASE_FLOORS.length)
const upwardInPostgres = upwardIn('databases/drivers/postgres/', POSTGRES_FLOORS, -1)

/** The feature of a file: `gateway/keys` for `src/gateway/keys/store.ts`, undefined for a file directly in `gateway/` or `auth/`. */
const featureOf = (file: string): string | undefined => /^(?:auth|gateway)\/[^/]+(?=\/)/.exec(file)?.[0]

/** Files that may use time, randomness, environment or network directly. All other code gets these as arguments. */
const TIME = ['kernel/clock.ts', 'cli/doctor-checks.ts'] // the doctor compares this machine's clock with the database's
/**
 * Users of the machine's clock. It may be wrong, so it never decides about shared rows (decision 33). `startup/control-database.ts` creates ids with
 * it. The doctor asks identity providers and issuers without a database.
 */
const MACHINE_TIME = [
  'kernel/clock.ts',
  'kernel/http/limits/limiter-table.ts',
  'startup/control-database.ts',
  'cli/provider-checks.ts',
  'cli/issuer-checks.ts',
]
const RANDOMNESS = ['kernel/random.ts', 'kernel/db/scram.ts'] // a salt; even tests need not predict it
const ENVIRONMENT = ['cli/context.ts']
const NETWORK = ['kernel/http/outbound/outbound.ts']
const CONNECTIONS = ['kernel/db/guarded-client.ts', 'kernel/db/guarded-pool.ts']
const CLIENT_ADDRESS = 'kernel/http/client-address.ts'

/** The only file that accesses rows of clients (decision 35). */
const DOOR = 'gateway/prepare.ts'

/** Abilities of drivers, beyond rows, that each file may use. These files check the required rights themselves. */
const ABILITIES: Readonly<Record<string, readonly string[]>> = {
  'gateway/sql/sql.ts': ['sql'],
  'gateway/rpc/rpc.ts': ['call'],
  'gateway/public-routes/call.ts': ['fixedSql'],
  'gateway/public-routes/definition.ts': ['fixedSql', 'changes'], // checks the text, and whether there are any
  'gateway/data/transaction.ts': ['transaction', 'idempotency'], // runs prepared operations
  'gateway/data/insert-batching.ts': ['transaction'], // runs prepared operations
  'gateway/import/import.ts': ['transaction'], // undoes prepared inserts
  'gateway/realtime/realtime.ts': ['changes'], // the rows are read through prepare
  'gateway/management/capabilities.ts': ['management'],
  'gateway/management/change.ts': ['management'],
  'gateway/management/indexes.ts': ['indexes'],
  'gateway/management/realtime.ts': ['changes'],
  'gateway/schema/schema.ts': ['indexes'],
  'gateway/schema/types/types.ts': ['declaredTypes'],
  'cli/doctor-checks.ts': ['sql'], // checks the login of the SQL role
}

/** Files that may depend on one driver, and why. */
const OF_ONE_DRIVER = [
  'databases/drivers/index.ts', // the list
  'databases/clients/custom.ts', // custom_supabase always uses that driver
  'cli/doctor-checks.ts', // finds tables without policies, on a separate connection
]

/** The door itself, and transactions in which nobody has acted before: new users, and a hash that is renewed. */
const OWN_TRANSACTIONS = [
  'identity/act.ts',
  'auth/sign-up/sign-up.ts',
  'auth/anonymous/anonymous.ts',
  'auth/door/hidden-sign-ups.ts',
  'auth/social/enter.ts',
  'identity/import/import.ts',
  'identity/passwords.ts',
  // Of jobs, whose events tell of their end.
  'gateway/backups/jobs/end.ts',
  'gateway/backups/schedules.ts',
  'gateway/backups/dump/restore-dump.ts',
]

/** Acts that hooks are asked about, and the functions that ask them. */
const ASKING = [
  { does: /\b(?:insertUser|insertUserWithPassword|insertHiddenSignUp)\(/, asks: /\bbeforeSignUp\(/ },
  { does: /\bisAnonymous: false\b/, asks: /\b(?:beforeSignUp|endAnonymity)\(/ },
  {
    does: /\b(?:insertSession|startInheritedSession|insertDerivedSession)\(/,
    asks: /\bexpectConsentToSignIn\(/,
  },
]

/** The caller of the first one asks (auth/email/new-address.ts), the second one makes an answer. */
const NOT_ASKING = ['auth/email/first-proof.ts', 'auth/sign-up/sign-up.ts']

/** An import is one act with an event for each user. The command line mends a database that the service does not run on. */
const TELLERS = [
  'identity/tell.ts',
  'identity/import/import.ts',
  'startup/lost-secret.ts',
  'gateway/backups/archive/restore-archive.ts',
]

const GENERATED = ['kernel/db/tables.ts', 'failure-codes.ts']

/** Files with more than 300 lines, and why they are not split. */
const LONG = [...GENERATED]

/** Tests that look at all sessions of a server, and why. */
const ALL_SESSIONS = [
  'embedded/folder-lock.slow.test.ts', // has a server of its own
  'sql/read-guard.test.ts', // reads them as a caller would
  'architecture.test.ts',
]

/** Established terms that contain a forbidden word. */
const TERMS = ['shared-connections']

const OWN_OF_A_DRIVER = /^databases\/drivers\/[^/]+\//

const FORBIDDEN_NAME = /^(utils?|helpers?|common|shared|core|base|managers?|services?|handlers?|misc|infos?)$/

const RULES: readonly Rule[] = [
  {
    says: 'imports only point downwards, and auth and gateway never import each other',
    complaints: ({ file, text }) =>
      importsOf({ file, text })
        .filter((target) => FLOORS[floorOf(file)]?.includes(floorOf(target)) !== true)
        .map((target) => `${floorOf(file)}/ may not import ${target}`),
    wrong: [
      { file: 'kernel/a.ts', text: "import { b } from '#identity/b.ts'\n" },
      { file: 'kernel/http/a.ts', text: "import type { B } from '../../app.ts'\n" },
      { file: 'identity/a.ts', text: "import {\n  b,\n  c,\n} from '#databases/b.ts'\n" },
      { file: 'databases/a.ts', text: "export { b } from '#identity/b.ts'\n" },
      { file: 'auth/a.ts', text: "import '#gateway/b.ts'\n" },
      { file: 'auth/session/a.ts', text: "import * as b from '#databases/b.ts'\n" },
      { file: 'gateway/a.ts', text: "const b = await import('#auth/b.ts')\n" },
      { file: 'gateway/data/a.ts', text: "type B = typeof import('../../auth/b.ts')\n" },
      { file: 'auth/a.ts', text: "import { b } from '#cli/b.ts'\n" },
      { file: 'console/a.ts', text: "import { b } from '#identity/b.ts'\n" },
      { file: 'kernel/a.ts', text: "import { b } from '#test/harness.ts'\n" },
    ],
    right: [
      { file: 'gateway/a.ts', text: "import { b } from '#identity/b.ts'\nimport c from 'pg'\n" },
      { file: 'kernel/a.ts', text: "/* import { b } from '#auth/b.ts' */\n// import '#auth/b.ts'\n" },
    ],
  },
  {
    says: 'imports in databases/ only point downwards: clients, drivers, plan, request',
    complaints: (source) => [...upwardInDatabases(source), ...upwardInPostgres(source)],
    wrong: [
      { file: 'databases/request/a.ts', text: "import type { Plan } from '#databases/plan/plan.ts'\n" },
      { file: 'databases/plan/a.ts', text: "import { b } from '../drivers/b.ts'\n" },
      { file: 'databases/drivers/postgres/a.ts', text: "import { b } from '#databases/clients/b.ts'\n" },
      { file: 'databases/failures.ts', text: "import { b } from './request/b.ts'\n" },
      { file: 'databases/drivers/postgres/sql/a.ts', text: "import { b } from '../protocol/b.ts'\n" },
      { file: 'databases/drivers/postgres/protocol/a.ts', text: "import { b } from '../pool/b.ts'\n" },
      {
        file: 'databases/drivers/postgres/pool/a.ts',
        text: "import { b } from '#databases/drivers/postgres/b.ts'\n",
      },
    ],
    right: [
      { file: 'databases/clients/a.ts', text: "import type { Table } from '#databases/plan/catalogue.ts'\n" },
      { file: 'databases/request/a.ts', text: "import { fail } from '#databases/failures.ts'\n" },
      { file: 'databases/drivers/postgres/roles/a.ts', text: "import { b } from '../pool/b.ts'\n" },
      { file: 'databases/drivers/supabase/a.ts', text: "import { b } from '../postgres/protocol/b.ts'\n" },
      { file: 'gateway/a.ts', text: "import { b } from '#databases/clients/b.ts'\n" },
    ],
  },
  {
    says: "a feature may import another feature's functions, but not its store or routes",
    complaints: (source) =>
      importsOf(source)
        .filter((target) => featureOf(target) !== undefined && featureOf(target) !== featureOf(source.file))
        .filter(
          (target) =>
            target.endsWith('/store.ts') || (target.endsWith('/routes.ts') && !isSurface(source.file)),
        )
        .filter(() => /^(auth|gateway)\//.test(source.file))
        .map((target) => `${target} belongs to its feature`),
    wrong: [
      { file: 'gateway/data/data.ts', text: "import { findKey } from '../keys/store.ts'\n" },
      { file: 'gateway/a.ts', text: "import { findKey } from './keys/store.ts'\n" },
      { file: 'gateway/surface.ts', text: "import { findKey } from './keys/store.ts'\n" },
      { file: 'auth/session/session.ts', text: "import { b } from '#auth/sign-in/routes.ts'\n" },
    ],
    right: [
      { file: 'gateway/keys/keys.ts', text: "import { findKey } from './store.ts'\n" },
      { file: 'auth/surface.ts', text: "import { signInRoutes } from './sign-in/routes.ts'\n" },
    ],
  },
  {
    says: 'statements of a feature are in its store',
    complaints: (source) =>
      isTest(source) || featureOf(source.file) === undefined || /\bstore\.ts$/.test(source.file)
        ? []
        : uses(source.text, false, /\.(?:selectFrom|insertInto|updateTable|deleteFrom)\(|`\.execute\(/g),
    wrong: [
      { file: 'auth/a/a.ts', text: "await db.deleteFrom('user').where('id', '=', id).execute()\n" },
      { file: 'gateway/a/routes.ts', text: 'await sql`select 1`.execute(db)\n' },
    ],
    right: [
      { file: 'auth/a/a.ts', text: `const condition = sql\`$\{key}\`\n` },
      { file: 'gateway/a/log-store.ts', text: "await db.selectFrom('user').execute()\n" },
      { file: 'identity/users.ts', text: "await db.selectFrom('user').execute()\n" },
    ],
  },
  {
    says: 'every import names its module literally',
    isGeneral: true,
    complaints: ({ text }) =>
      (withoutComments(text).match(/\bimport\s*\(\s*(?!['"])/g) ?? []).map(
        () => 'import() of a computed name',
      ),
    wrong: [{ file: 'kernel/a.ts', text: 'const load = (name: string) => import(name)\n' }],
  },
  {
    says: 'index.ts is a literal list, never a barrel',
    complaints: ({ file, text }) =>
      path.basename(file) === 'index.ts' &&
      /^export\b[^\n]*\bfrom\b|=>|\bfunction\b/m.test(withoutComments(text))
        ? ['an index.ts holds one literal list']
        : [],
    wrong: [
      { file: 'auth/index.ts', text: "export * from './surface.ts'\n" },
      { file: 'databases/drivers/index.ts', text: 'export const find = (name: string) => name\n' },
    ],
    right: [
      {
        file: 'auth/social/providers/index.ts',
        text: "import { github } from './github.ts'\n\nexport const providers = { github }\n",
      },
    ],
  },
  {
    says: 'file names are kebab-case and descriptive',
    isGeneral: true,
    complaints: ({ file }) => [
      ...partsOf(file)
        .filter((part) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(part))
        .map((part) => `${part} is not kebab-case`),
      ...partsOf(file)
        .filter((part) => !TERMS.includes(part))
        .flatMap((part) => part.split('-'))
        .filter((word) => FORBIDDEN_NAME.test(word))
        .map((word) => `"${word}" is not descriptive (house.md 7)`),
    ],
    wrong: [
      { file: 'kernel/utils.ts', text: '' },
      { file: 'kernel/helpers/a.ts', text: '' },
      { file: 'auth/session-manager.ts', text: '' },
      { file: 'gateway/keys/key-service.test.ts', text: '' },
      { file: 'auth/signIn.ts', text: '' },
    ],
    right: [
      { file: 'auth/sign-in/sign-in.test.ts', text: '' },
      { file: 'gateway/data/slow-readers.slow.test.ts', text: '' },
    ],
  },
  {
    says: 'time, randomness, environment and network are passed as arguments',
    complaints: ({ file, text }) =>
      isTest({ file, text })
        ? []
        : [
            ...uses(
              text,
              TIME.includes(file),
              /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()|(?<!new )\bDate\(\s*\)/g,
            ),
            ...uses(text, MACHINE_TIME.includes(file), /\bsystemClock\b/g),
            ...uses(
              text,
              RANDOMNESS.includes(file),
              /\bMath\.random\b|\brandomBytes\(|\brandomUUID\b|\bgetRandomValues\b/g,
            ),
            ...uses(text, ENVIRONMENT.includes(file), /\bprocess\.env\b|\bprocess\[/g),
            ...uses(
              text,
              NETWORK.includes(file),
              /(?<![.\w#])(?<!function )(?<!async )fetch\(|\bglobalThis\.fetch\b/g,
            ),
          ],
    wrong: [
      { file: 'auth/a.ts', text: 'const now = Date.now()\n' },
      { file: 'auth/a.ts', text: 'const now = new Date()\n' },
      { file: 'auth/a.ts', text: `const text = \`it is $\{new Date().toISOString()}\`\n` },
      { file: 'auth/a.ts', text: 'const half = a / 2; const now = Date.now() / 2\n' },
      { file: 'auth/a.ts', text: 'const kernel = { db, now: systemClock }\n' },
      { file: 'gateway/a.ts', text: 'const n = Math.random()\n' },
      { file: 'gateway/a.ts', text: 'const id = crypto.randomUUID()\n' },
      { file: 'kernel/a.ts', text: 'const home = process.env.HOME\n' },
      { file: 'databases/a.ts', text: "const answer = await fetch('https://example.com')\n" },
      { file: 'kernel/http/a.ts', text: 'const answer = globalThis.fetch(url)\n' },
    ],
    right: [
      { file: 'kernel/clock.ts', text: 'export const systemClock = () => new Date()\n' },
      {
        file: 'auth/a.ts',
        text: 'const end = new Date(now.getTime() + 1)\nconst took = performance.now()\n',
      },
      {
        file: 'auth/a.ts',
        text: "// Date.now() is not for us\nconst says = 'never Date.now()'\nconst r = /Date.now()/\n",
      },
      { file: 'gateway/a.ts', text: 'const rows = await driver.fetch(plan)\n' },
    ],
  },
  {
    says: "a client's address comes from request.clientAddress, not from the socket or a header",
    complaints: ({ file, text }) =>
      isTest({ file, text })
        ? []
        : uses(text, file === CLIENT_ADDRESS, /\brequest\.ips?\b|\bremoteAddress\b|\btrustProxy\b/g),
    wrong: [
      { file: 'auth/a.ts', text: 'await kernel.limits.consume(rule, request.ip)\n' },
      { file: 'kernel/http/a.ts', text: 'const address = request.socket.remoteAddress\n' },
    ],
    right: [{ file: 'auth/a.ts', text: 'await kernel.limits.consume(rule, request.clientAddress)\n' }],
  },
  {
    says: 'every connection to Postgres is created by a guarded client or pool, with error listener and deadline',
    complaints: (source) =>
      isTest(source)
        ? []
        : uses(
            source.text,
            CONNECTIONS.includes(source.file),
            /\bnew pg\.(?!Query\b)\w+|\bextends pg\.(?:Client|Pool)\b/g,
          ),
    wrong: [
      { file: 'cli/a.ts', text: 'const client = new pg.Client({ connectionString: url })\n' },
      { file: 'kernel/db/a.ts', text: 'const pool = new pg.Pool(config)\n' },
      { file: 'databases/a.ts', text: 'class A extends pg.Client {}\n' },
    ],
    right: [
      { file: 'cli/a.ts', text: 'await onConnection({ url, name }, (client: pg.Client) => work(client))\n' },
    ],
  },
  {
    says: 'the rows of a client are reached through prepare, which asks for the rights',
    complaints: (source) =>
      isTest(source) || source.file.startsWith('databases/')
        ? []
        : uses(
            source.text,
            source.file === DOOR,
            // Without rows: which driver it is, whether it is alive, its connections, its end.
            /(?<!\/)\bdriver\s*\??\.\s*(?!(?:name|probe|requireSession|stats|close)\b)\w+|\bDriver\b|\}\s*=\s*[\w.]*\bdriver\b(?!\s*\??\.)/g,
          ),
    wrong: [
      { file: 'gateway/a/a.ts', text: 'const rows = await client.driver.select(plan)\n' },
      { file: 'gateway/a/a.ts', text: 'const plan = await driver.plan(request, EVERY_RIGHT)\n' },
      { file: 'gateway/a/a.ts', text: 'const run = driver?.as\n' },
      { file: 'gateway/a/a.ts', text: 'const { select } = client.driver\n' },
      { file: 'gateway/a/a.ts', text: 'const all = caller.backend as Driver\n' },
      { file: 'gateway/a/a.ts', text: "import type { Driver } from '#databases/drivers/driver.ts'\n" },
      { file: 'cli/a.ts', text: 'await driver.insert(plan)\n' },
    ],
    right: [
      { file: DOOR, text: 'const driverOf = ({ backend }: GatewayCaller): Driver => backend as Driver\n' },
      { file: 'gateway/a/a.ts', text: "const fetch = await prepare(kernel, caller, body, 'fetch')\n" },
      { file: 'app.ts', text: 'const says = driver.name + (await driver.probe())\n' },
      { file: 'databases/clients/a.ts', text: 'await client.driver.close()\n' },
    ],
  },
  {
    says: 'an ability of a driver is asked for by name, where its right is checked',
    complaints: (source) =>
      isTest(source) || source.file.startsWith('databases/')
        ? []
        : [...source.text.matchAll(/\brequireAbility\(\s*(?:[\w.]+\s*,\s*'(\w+)')?/g)]
            .map(([found, ability = found]) => ability)
            .filter((ability) => ABILITIES[source.file]?.includes(ability) !== true)
            .map((ability) => `${ability} is not for this file (ABILITIES)`),
    wrong: [
      { file: 'gateway/a/a.ts', text: "await requireAbility(backend, 'sql')(request)\n" },
      { file: 'gateway/sql/sql.ts', text: "await requireAbility(caller.backend, 'call')(request)\n" },
      { file: 'gateway/sql/sql.ts', text: 'await requireAbility(backend, ability)(request)\n' },
    ],
    right: [
      { file: 'gateway/sql/sql.ts', text: "const run = requireAbility(backend, 'sql')\n" },
      {
        file: 'gateway/sql/sql.ts',
        text: "import { requireAbility } from '#databases/drivers/abilities.ts'\n",
      },
    ],
  },
  {
    says: "a driver's own files are known to drivers alone",
    complaints: (source) =>
      isTest(source)
        ? []
        : importsOf(source)
            .filter((target) => OWN_OF_A_DRIVER.test(target) && !OWN_OF_A_DRIVER.test(source.file))
            .filter(() => !OF_ONE_DRIVER.includes(source.file))
            .map((target) => `${target} is of one driver; index.ts lists what all have`),
    wrong: [
      { file: 'gateway/a/a.ts', text: "import { b } from '#databases/drivers/postgres/sql/ddl/tables.ts'\n" },
      { file: 'databases/plan/a.ts', text: "import type { B } from '#databases/drivers/scylla/b.ts'\n" },
      { file: 'databases/drivers/planner.ts', text: "import { b } from './postgres/b.ts'\n" },
    ],
    right: [
      { file: 'databases/drivers/index.ts', text: "import { make } from './postgres/open.ts'\n" },
      { file: 'databases/drivers/postgres/a.ts', text: "import { b } from './sql/b.ts'\n" },
      { file: 'databases/drivers/supabase/a.ts', text: "import { b } from '../postgres/sql/b.ts'\n" },
      { file: 'gateway/a/a.ts', text: "import { drivers } from '#databases/drivers/index.ts'\n" },
    ],
  },
  {
    says: 'drivers are distinguished by abilities, not by name',
    complaints: (source) =>
      isTest(source)
        ? []
        : (source.text.match(/[=!]==?\s*'(?:postgresql|supabase|scylladb)'/g) ?? []).map(
            (found) => `${found} compares a driver's name`,
          ),
    wrong: [
      { file: 'gateway/a/a.ts', text: "const can = backend.name === 'postgresql'\n" },
      { file: 'kernel/config/a.ts', text: "const broken = driver !== 'scylladb'\n" },
    ],
    right: [
      { file: 'gateway/a/a.ts', text: 'const can = backend.management !== undefined\n' },
      { file: 'gateway/a/a.ts', text: "const driver = asked.driver ?? 'postgresql'\n" },
    ],
  },
  {
    says: 'what the control database holds is changed by act, with listed exceptions',
    complaints: (source) =>
      isTest(source) || source.file.startsWith('kernel/') || OWN_TRANSACTIONS.includes(source.file)
        ? []
        : (source.text.match(/\batomically\(/g) ?? []).map(
            () => 'a transaction of its own (identity/act.ts)',
          ),
    wrong: [
      { file: 'auth/a/a.ts', text: 'return atomically(kernel, async (kernel) => remove(kernel))\n' },
      { file: 'cli/a.ts', text: 'await atomically(kernel, work)\n' },
      { file: 'gateway/a/a.ts', text: 'await atomically(kernel, work)\n' },
    ],
    right: [
      { file: 'auth/a/a.ts', text: 'return act(kernel, bySession(caller), (kernel) => remove(kernel))\n' },
      { file: 'gateway/a/a.ts', text: 'await actAsOperator(kernel, work)\n' },
    ],
  },
  {
    says: 'acts are told by tell, so that none forgets its event',
    complaints: ({ file, text }) => {
      if (isTest({ file, text }) || file.startsWith('kernel/') || TELLERS.includes(file)) return []
      // The gateway emits events of operations on clients' databases, which are no acts.
      const calls = /^(?:gateway|databases)\//.test(file) ? /\brecordAct\(/g : /\b(?:recordAct|emit)\(/g
      return (text.match(calls) ?? []).map((call) => `${call}…) (identity/tell.ts)`)
    },
    wrong: [
      { file: 'auth/a/a.ts', text: "await recordAct(kernel, 'user.updated', { targetId })\n" },
      { file: 'identity/a.ts', text: "await emit(kernel, 'auth_user_banned', { user_id })\n" },
      { file: 'gateway/a/a.ts', text: "await recordAct(kernel, 'client.updated', { targetId })\n" },
    ],
    right: [
      { file: 'auth/a/a.ts', text: "await tell(kernel, 'user.updated', { targetId })\n" },
      { file: 'gateway/a/a.ts', text: "await emit(kernel, 'gateway_insert', data)\n" },
    ],
  },
  {
    says: 'what adds a user, makes an anonymous one known, or begins a session of a user asks the hooks (decision 68)',
    complaints: ({ file, text }) =>
      isTest({ file, text }) || !file.startsWith('auth/') || NOT_ASKING.includes(file)
        ? []
        : ASKING.filter(({ does, asks }) => does.test(text) && !asks.test(text)).map(
            ({ asks }) => `nothing matches ${asks.source}`,
          ),
    wrong: [
      { file: 'auth/a/a.ts', text: 'const user = await insertUserWithPassword(db, newUser, credential)\n' },
      { file: 'auth/a/a.ts', text: 'await insertHiddenSignUp(db, owner, asked)\n' },
      { file: 'auth/a/a.ts', text: 'await updateUser(db, id, { isAnonymous: false }, now)\n' },
      { file: 'auth/door/a.ts', text: 'const { session } = await insertSession(db, row, limits)\n' },
      { file: 'auth/door/a.ts', text: 'const started = await startInheritedSession(kernel, asked)\n' },
    ],
    right: [
      { file: 'auth/a/a.ts', text: 'const admission = await admit(kernel, entrance, context)\n' },
      {
        file: 'auth/door/a.ts',
        text: 'const { session } = await insertSession(db, row)\nexpectConsentToSignIn(kernel, user, session)\n',
      },
      { file: 'auth/admin/a.ts', text: 'const session = await insertImpersonation(db, row, max)\n' },
    ],
  },
  {
    says: 'a password that becomes a hash has passed the policy, its breach checks too',
    complaints: ({ file, text }) =>
      !isTest({ file, text }) &&
      !file.startsWith('identity/') &&
      /\bhashPassword\(/.test(text) &&
      !/\bacceptablePassword\(/.test(text)
        ? ['hashes a password without acceptablePassword (auth/password/password-policy.ts)']
        : [],
    wrong: [{ file: 'auth/a/a.ts', text: 'const stored = await hashPassword(kernel, asked.password)\n' }],
    right: [
      {
        file: 'auth/a/a.ts',
        text: 'const stored = await hashPassword(kernel, await acceptablePassword(kernel, asked.password))\n',
      },
    ],
  },
  {
    says: 'a file has at most 300 lines, with listed exceptions',
    isGeneral: true,
    complaints: ({ file, text }) => {
      const lines = text.split('\n').length - 1
      return lines > 300 && !LONG.includes(file)
        ? [`${lines} lines; split it, or add it to LONG with a reason`]
        : []
    },
    wrong: [{ file: 'kernel/a.ts', text: 'const a = 1\n'.repeat(301) }],
    right: [{ file: 'kernel/a.ts', text: 'const a = 1\n'.repeat(300) }],
  },
  {
    says: 'comments begin with their subject, not with What or Who',
    isGeneral: true,
    complaints: ({ text }) => text.match(/(?:\/\/|\/\*\*|\n *\*) (?:What|Who)(?:ever)? [^\n]*/g) ?? [],
    wrong: [
      { file: 'auth/a.ts', text: '/** What a verb may require. */\n' },
      { file: 'auth/a.test.ts', text: '  // Who has the key may read.\n' },
      { file: 'auth/a.ts', text: '/**\n * Whoever holds the lock decides.\n */\n' },
    ],
    right: [{ file: 'auth/a.ts', text: '/** The permissions that a verb may require. */\n' }],
  },
  {
    says: 'there are no default exports',
    isGeneral: true,
    complaints: ({ text }) =>
      /^export default\b|^export\s*\{[^}]*\bas default\b/m.test(withoutComments(text))
        ? ['a default export']
        : [],
    wrong: [
      { file: 'kernel/a.ts', text: 'export default function a() {}\n' },
      { file: 'kernel/a.ts', text: 'const a = 1\nexport { a as default }\n' },
    ],
    right: [{ file: 'kernel/a.ts', text: "import pg from 'pg'\n" }],
  },
]

for (const { says, isGeneral = false, complaints, wrong, right = [] } of RULES) {
  test(says, () => {
    for (const sample of wrong) {
      assert.equal(complaints(sample).length, 1, `the rule does not detect:\n${sample.text}`)
    }
    for (const sample of right) assert.deepEqual(complaints(sample), [], sample.text)
    const files = [...sources(), ...(isGeneral ? sources(CLIENT) : [])]
    const found = files.flatMap((source) => complaints(source).map((says) => `${source.file}: ${says}`))
    assert.deepEqual(found, [])
  })
}

/** Ways in which a text becomes markup or code, or stays in the browser, and the files that use one on purpose. */
const NOT_IN_PAGES: Readonly<Record<string, RegExp>> = {
  markup:
    /\b(?:inner|outer)HTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|\bsrcdoc\b|document\.write|DOMParser|createContextualFragment|setHTMLUnsafe/g,
  code: /\beval\(|new Function\b|setTimeout\(\s*['"`]|createPolicy/g,
  storage: /\b(?:localStorage|sessionStorage|indexedDB|caches|document\.cookie)\b/g,
  requests: /(?<![.\w])fetch\(|XMLHttpRequest|sendBeacon|EventSource|WebSocket/g,
}
const IN_PAGES = ['api.js: fetch(', 'shell.js: localStorage', 'shell.js: localStorage']

test('pages of the console show values as text, store nothing but the theme, and call the API in one place', () => {
  const complaints = (file: string, text: string) =>
    Object.values(NOT_IN_PAGES).flatMap((pattern) =>
      (text.match(pattern) ?? []).map((found) => `${file}: ${found}`),
    )
  for (const wrong of ['a.innerHTML = b', 'new DOMParser()', 'eval(a)', 'sessionStorage.key', 'fetch(url)'])
    assert.equal(complaints('a.js', wrong).length, 1, wrong)
  assert.deepEqual(complaints('a.js', 'html`<b>innerText</b>`; prefetch(a)'), [])
  const folder = new URL('console/assets/', SRC)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.js'),
  )
  const texts = files.map((file) => [file, readFileSync(new URL(file, folder), 'utf8')] as const)
  assert.deepEqual(texts.flatMap(([file, text]) => complaints(file, text)).toSorted(), IN_PAGES)
  for (const [file, text] of texts) assert.ok(text.split('\n').length <= 301, file)
})

test('every import that the scanner finds is an existing file', () => {
  const files = new Set(sources().map(({ file }) => file))
  const all = sources().flatMap(importsOf)
  assert.ok(all.length > files.size)
  for (const target of all) if (!target.startsWith('test/')) assert.ok(files.has(target), target)
})

test('imports form no cycle, not even type imports', () => {
  const imports = new Map(sources().map((source) => [source.file, importsOf(source)]))
  assert.deepEqual(
    cycleIn(
      new Map([
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['b']],
      ]),
    ),
    ['b', 'c', 'b'],
  )
  assert.deepEqual(cycleIn(imports), undefined)
  const assets = sources(new URL('console/assets/', SRC), '.js')
  const ofConsole = new Map(assets.map((source) => [source.file, importsOf(source)]))
  assert.ok(ofConsole.get('shell.js')?.includes('screens/users.js'))
  assert.deepEqual(cycleIn(ofConsole), undefined)
})

test('a package imports its own files alone, and these form no cycle', () => {
  const files = sources(CLIENT)
  const names = files.map(({ file }) => file)
  for (const source of files)
    for (const target of importsOf(source)) assert.ok(names.includes(target), `${source.file}: ${target}`)
  assert.deepEqual(cycleIn(new Map(files.map((source) => [source.file, importsOf(source)]))), undefined)
})

test('everything exported is used by another file', () => {
  const files = ['src/', 'packages/client/src/', 'test/', 'scripts/', 'bench/', 'examples/', 'bin/'].flatMap(
    (folder) =>
      readdirSync(new URL(`../${folder}`, import.meta.url), { recursive: true, encoding: 'utf8' })
        // Those that `npm run bench` compares with have packages of their own.
        .filter((file) => /\.m?[jt]s$/.test(file) && !file.includes('node_modules/'))
        .map((file) => folder + file),
  )
  const words = files.map((file) => {
    const text = readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')
    return { file, words: new Set(text.match(/[\w-]+/g)) }
  })
  const isUsed = (file: string, name: string) =>
    words.some((user) => user.file !== file && user.words.has(name) && user.words.has(moduleOf(file)))
  const isWritten = ({ file }: Source) => !GENERATED.includes(file)
  const unused = (folder: string, all: readonly Source[]) =>
    all.flatMap(({ file, text }) =>
      [...text.matchAll(/^export (?:async )?(?:function\*?|const|let|class|type|interface) (\w+)/gm)]
        .map(([, name = '']) => name)
        .filter((name) => !isUsed(folder + file, name))
        .map((name) => `${file}: ${name}`),
    )
  const found = [
    ...unused('src/', sources().filter(isWritten)),
    ...unused('packages/client/src/', sources(CLIENT).filter(isWritten)),
  ]
  assert.deepEqual(found, [])
})

test('code without comments and texts still parses', () => {
  for (const { file, text } of sources()) {
    assert.doesNotThrow(() => stripTypeScriptTypes(withoutComments(text)), file)
  }
})

test('tests look at the sessions and locks of their own database: the server is shared', () => {
  const complaints = (text: string) =>
    text.match(
      /pg_(?:locks|stat_activity)\b(?![^`]*?(?:datname|pid = pg_backend_pid|application_name = \$1))/g,
    ) ?? []
  assert.equal(complaints("`select from pg_locks where not granted` + 'where datname'").length, 1)
  assert.equal(complaints('`select from pg_locks where datname = current_database()`').length, 0)
  const folders = ['../src/', '../test/'].map((folder) => new URL(folder, import.meta.url))
  const found = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(
        (file) => file.endsWith('.ts') && (folder.pathname.endsWith('/test/') || isTest({ file, text: '' })),
      )
      .filter((file) => !ALL_SESSIONS.some((name) => file.endsWith(name)))
      .filter((file) => complaints(readFileSync(new URL(file, folder), 'utf8')).length > 0),
  )
  assert.deepEqual(found, [])
})

/**
 * Installations know migrations by the names of their files, so a file that was applied keeps its name. The order of files with one number is that
 * of their names, and these two are about different tables.
 */
const SHARED_NUMBERS = ['0063_direct_urls.sql', '0063_last_organization.sql']

test('every migration has a number of its own, with listed exceptions', () => {
  const files = readdirSync(new URL('../migrations/', SRC)).filter((file) => /^\d/.test(file))
  const numbers = Map.groupBy(files, (file) => file.slice(0, 4))
  const shared = [...numbers.values()].filter(({ length }) => length > 1).flat()
  assert.deepEqual(shared, SHARED_NUMBERS)
})

test('every listed exception is still needed', () => {
  const byFile = new Map([...sources(), ...sources(CLIENT)].map(({ file, text }) => [file, text]))
  for (const file of LONG)
    assert.ok((byFile.get(file)?.split('\n').length ?? 0) > 301 || file.endsWith('tables.ts'), file)
  for (const file of TELLERS) assert.match(byFile.get(file) ?? '', /\b(?:recordAct|emit)\(/, file)
  for (const file of OWN_TRANSACTIONS) assert.match(byFile.get(file) ?? '', /\batomically\(/, file)
  for (const file of [...TIME, ...RANDOMNESS, ...ENVIRONMENT]) assert.ok(byFile.has(file), file)
})

/** The word by which a file is imported: `prepare` for `gateway/prepare.ts`. */
const moduleOf = (file: string): string => path.basename(file).replace(/\..*/, '')

/** The first cycle found, as a path of files. */
function cycleIn(imports: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  const follow = (file: string, path: readonly string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    const found = firstOf(imports.get(file) ?? [], (target) => follow(target, [...path, file]))
    done.add(file)
    return found
  }
  return firstOf([...imports.keys()], (file) => follow(file, []))
}

function firstOf<T, R>(items: readonly T[], work: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const found = work(item)
    if (found !== undefined) return found
  }
  return undefined
}

/** A surface registers the routes of all its features. */
const isSurface = (file: string): boolean => file === 'auth/surface.ts' || file === 'gateway/surface.ts'

const partsOf = (file: string): string[] => file.replace(/(\.slow)?(\.test)?\.ts$/, '').split('/')

const uses = (text: string, isMadeForIt: boolean, what: RegExp): string[] =>
  isMadeForIt
    ? []
    : (withoutComments(text).match(what) ?? []).map((found) => `${found} is allowed in listed files only`)

/** The files of this project that a file imports, as paths from src; tests may import `#test/…`. */
function importsOf(source: Source): string[] {
  const { file, text } = source
  const statement =
    /^(?:import|export)\b[^'"`;()]*?\bfrom\s*(['"])([^'"]+)\1|^import\s*(['"])([^'"]+)\3|\bimport\s*\(\s*(['"])([^'"]+)\5/gm
  const targets = [...withoutComments(text).matchAll(statement)]
    .map((found) => found[2] ?? found[4] ?? found[6] ?? '')
    .filter((specifier) => /^[#.]/.test(specifier))
    .map((specifier) => resolved(file, specifier))
  // Tests may import the harness and files outside src.
  return isTest(source) ? targets.filter((target) => !/^(test|\.\.)\//.test(target)) : targets
}

const resolved = (file: string, specifier: string): string =>
  specifier === '#app'
    ? 'app.ts'
    : specifier.startsWith('#')
      ? specifier.slice(1)
      : path.posix.join(path.posix.dirname(file), specifier)
