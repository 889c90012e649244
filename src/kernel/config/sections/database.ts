import { Type } from 'typebox'
import { clientUrlForm, DRIVER_NAMES, databaseUrlForm } from '../addresses.ts'
import { textForm } from '../forms.ts'
import { choice, duration, flag, integer, named, section, text } from '../setting.ts'

const CONNECTIONS = { min: 1, max: 1000 }

export const database = section('The control database: users, sessions, keys and the queue.', {
  url: Type.Optional(
    text(
      'A Postgres server instead of the embedded one.',
      { secret: 'password', absent: 'embedded PostgreSQL in server.data_dir', alias: 'DATABASE_URL' },
      databaseUrlForm,
    ),
  ),
  direct_url: Type.Optional(
    text(
      'The same database past a pooler (PgBouncer), for what needs a session of its own: LISTEN, locks, migrations, making databases and roles.',
      { secret: 'password', absent: 'database.url' },
      databaseUrlForm,
    ),
  ),
  migrate: flag('Whether the start brings the schema up to date; else `gatehouse migrate` does.', {
    default: true,
  }),
  max_connections: integer('Connections of one process.', CONNECTIONS, { default: 10 }),
  max_waiting: integer(
    'Requests in one process that may wait for a connection, and as many look-ups that may be under way; past it the answer is 503.',
    { min: 1, max: 100_000 },
    { default: 1000 },
  ),
})

/** gateway.md 2. `custom_supabase` takes its address from the request and cannot be configured. */
export const clientNameForm = textForm(
  'client name',
  /^(?!custom_supabase$)[A-Za-z][A-Za-z0-9_-]{0,62}$/,
  'a letter, then up to 62 letters, digits, _ or -, and not custom_supabase',
)

/** `none` is how SQL names the role that one had. */
const roleForm = textForm('role', /^(?!none$)[^\0]{1,63}$/, 'the name of a database role')

const callerRole = (name: string) =>
  `\`${name}\`; of the built-in client on a server, the one that was made: {control database}_${name}`

const rowLevelSecurity = section(
  'Policies of the database decide about each row, by the session of the caller (postgresql only).',
  {
    enabled: flag('Whether data operations run as one of these roles, with the claims of the session.', {
      default: false,
    }),
    anonymous_role: Type.Optional(
      text('Role of callers without a session.', { absent: callerRole('anon') }, roleForm),
    ),
    signed_in_role: Type.Optional(
      text('Role of callers with a session.', { absent: callerRole('authenticated') }, roleForm),
    ),
  },
)

const sqlRole = section(
  'The login for SQL of the callers’ own (POST /query/sql, /gateway/query), which then cannot end or cancel statements of the role in the URL (postgresql only). Neither that role nor a member of it. Without it the right gateway.query.read allows no function that may do more than read.',
  {
    name: Type.Optional(text('The role.', { absent: 'that of the URL' }, roleForm)),
    password: Type.Optional(text('Its password.', { secret: 'all', absent: 'none' })),
  },
)

const client = section('A named database connection.', {
  driver: choice('How the database is spoken to.', DRIVER_NAMES, { default: 'postgresql' }),
  url: Type.Optional(
    text(
      'The database and the role to use there.',
      { secret: 'password', absent: 'required, but for the built-in client `default`' },
      clientUrlForm,
    ),
  ),
  description: Type.Optional(text('For people.', { absent: 'none' })),
  max_connections: integer('Connections of one process.', CONNECTIONS, { default: 10 }),
  sql_connections: integer(
    'Further connections of one process for SQL of the callers’ own, and as many for functions.',
    CONNECTIONS,
    { default: 4 },
  ),
  max_waiting: integer(
    'Callers in one process who may wait for a connection; past it the answer is 503. Reads by key that wait together count as one.',
    { min: 0, max: 100_000 },
    { default: 1000 },
  ),
  connect_timeout: duration('Time to connect.', ['5s', '100ms', '10m']),
  statement_timeout: duration('Time for a statement.', ['30s', '100ms', '1d']),
  idle_timeout: duration('Time after which an unused connection is closed.', ['30s', '1s', '1d']),
  enforce_api_keys: Type.Optional(
    flag('Whether data operations on this client need an API key.', {
      absent: 'as gateway.enforce_api_keys',
    }),
  ),
  row_level_security: rowLevelSecurity,
  sql_role: sqlRole,
})

/** It is there without an entry, or with one that has no URL. */
export const BUILT_IN_CLIENT = 'default'

export const clients = named(
  'Databases that the gateway serves, by name. `default` is built in, beside the control database, unless it has a URL here or is `false`.',
  clientNameForm,
  client,
  BUILT_IN_CLIENT,
)
