import { Type } from 'typebox'
import { clientUrlForm, DRIVER_NAMES, databaseUrlForm } from '../addresses.ts'
import { textForm } from '../forms.ts'
import { choice, defaultsOf, duration, flag, integer, named, section, text } from '../setting.ts'
import { issuers } from './issuers.ts'

const CONNECTIONS = { min: 1, max: 1000 }

export const database = section('The control database: users, sessions, keys and the queue.', {
  url: Type.Optional(
    text(
      'PostgreSQL server to use instead of the embedded one.',
      {
        secret: 'password',
        absent: 'embedded PostgreSQL in server.data_dir',
        alias: 'DATABASE_URL',
        emptied:
          'is set and empty: name the server, or remove the variable to use the embedded PostgreSQL in server.data_dir',
      },
      databaseUrlForm,
    ),
  ),
  direct_url: Type.Optional(
    text(
      'Direct URL of the same database when database.url is a pooler (PgBouncer), for work that needs a session of its own: LISTEN, locks, migrations, creating databases and roles.',
      { secret: 'password', absent: 'database.url' },
      databaseUrlForm,
    ),
  ),
  migrate: flag('Whether the start applies migrations; otherwise run `gatehouse migrate`.', {
    default: true,
  }),
  max_connections: integer('Connections of one process.', CONNECTIONS, { default: 10 }),
  max_waiting: integer(
    'Requests of one process that may wait for a connection, and look-ups that may be under way; beyond it the answer is 503.',
    { min: 1, max: 100_000 },
    { default: 1000 },
  ),
})

/** gateway.md 2. `custom_supabase` has its address from the request and cannot be configured. */
export const clientNameForm = textForm(
  'client name',
  /^(?!custom_supabase$)[A-Za-z][A-Za-z0-9_-]{0,62}$/,
  'a letter, then up to 62 letters, digits, _ or -, and not custom_supabase',
)

/** In SQL, `none` names the original role. */
const roleForm = textForm('role', /^(?!none$)[^\0]{1,63}$/, 'the name of a database role')

const callerRole = (name: string) =>
  `\`${name}\`; for the built-in client on a server: {control database}_${name}`

const rowLevelSecurity = section(
  'Row-level security: policies of the database decide about each row by the session of the caller (postgresql only).',
  {
    enabled: Type.Optional(
      flag('Whether data operations run as one of these roles, with the claims of the session.', {
        absent:
          'false; for the built-in client, until `PUT /admin/clients/default/row-level-security` switches it on',
      }),
    ),
    anonymous_role: Type.Optional(
      text('Role of callers without a session.', { absent: callerRole('anon') }, roleForm),
    ),
    signed_in_role: Type.Optional(
      text('Role of callers with a session.', { absent: callerRole('authenticated') }, roleForm),
    ),
    issuers,
    own_sessions: flag('Whether sessions of this service are accepted beside the JWTs of issuers.', {
      default: true,
    }),
    request_jwt_claims: flag(
      'Whether the setting request.jwt.claims is filled too, as by PostgREST: the claims of request.claims, with `sub` and the role of the database as `role`.',
      { default: false },
    ),
  },
)

const sqlRole = section(
  'Role for SQL that callers write (POST /query/sql, /gateway/query); it cannot end or cancel statements of the role in the URL (postgresql only). It must be neither that role nor a member of it. Without it, the right gateway.query.read allows no function that may do more than read.',
  {
    name: Type.Optional(text('The role.', { absent: 'that of the URL' }, roleForm)),
    password: Type.Optional(text('Its password.', { secret: 'all', absent: 'none' })),
  },
)

const LIMITS = {
  max_connections: integer('Connections of one process.', CONNECTIONS, { default: 10 }),
  sql_connections: integer(
    'Further connections of one process for SQL that callers write, and the same number for functions.',
    CONNECTIONS,
    { default: 4 },
  ),
  max_waiting: integer(
    'Callers of one process who may wait for a connection; beyond it the answer is 503. Reads by key that wait together count as one.',
    { min: 0, max: 100_000 },
    { default: 1000 },
  ),
  connect_timeout: duration('Longest time to connect.', ['5s', '100ms', '10m']),
  statement_timeout: duration('Longest time of a statement.', ['30s', '100ms', '1d']),
  idle_timeout: duration('Time after which an unused connection is closed.', ['30s', '1s', '1d']),
}

/** The limits of a client without settings of its own. Times are in milliseconds. */
export const CLIENT_LIMITS = defaultsOf(LIMITS)

const REALTIME = {
  keep: duration(
    'How long changes of live tables are kept in the database, at least: a reader that was away for longer gets all rows again.',
    ['1d', '1h', '30d'],
  ),
}

/** Milliseconds, of a client without settings of its own. */
export const CHANGES_KEPT = defaultsOf(REALTIME).keep

const client = section('A named database connection.', {
  driver: choice('Driver of the database.', DRIVER_NAMES, { default: 'postgresql' }),
  url: Type.Optional(
    text(
      'Database, and the role to use.',
      { secret: 'password', absent: 'required, except for the built-in client `default`' },
      clientUrlForm,
    ),
  ),
  direct_url: Type.Optional(
    text(
      'Direct URL of the same database and role when url is a pooler (PgBouncer), for backups, restores, management, and the tables of the logging client.',
      { secret: 'password', absent: 'clients.NAME.url' },
      clientUrlForm,
    ),
  ),
  description: Type.Optional(text('Description for operators.', { absent: 'none' })),
  ...LIMITS,
  enforce_api_keys: Type.Optional(
    flag('Whether data operations on this client need an API key.', {
      absent: 'as gateway.enforce_api_keys',
    }),
  ),
  row_level_security: rowLevelSecurity,
  sql_role: sqlRole,
  realtime: section('Live rows (postgresql only).', REALTIME),
})

/** It exists without an entry, or with one that has no URL. */
export const BUILT_IN_CLIENT = 'default'

export const clients = named(
  'Databases that the gateway serves, by name. `default` is built in, in a database next to the control database, unless it has a URL here or is `false`.',
  clientNameForm,
  client,
  BUILT_IN_CLIENT,
)
