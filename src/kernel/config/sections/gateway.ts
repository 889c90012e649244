import { Type } from 'typebox'
import { hostPatternForm } from '../addresses.ts'
import { textForm } from '../forms.ts'
import { duration, flag, integer, list, section, size, text } from '../setting.ts'
import { clientNameForm } from './database.ts'

const extensionForm = textForm(
  'extension',
  /^[a-z][a-z0-9_-]{0,62}$/,
  'the name of an extension: at most 63 lower-case letters, digits, "_" and "-"',
)

const EXTENSIONS = [
  'pgcrypto', 'uuid-ossp', 'citext', 'pg_trgm', 'hstore', 'ltree', 'unaccent', 'btree_gin',
  'btree_gist', 'fuzzystrmatch', 'vector',
] // biome-ignore format: a list

export const gateway = section('The data gateway.', {
  enforce_api_keys: flag('Whether data operations need an API key; clients can override it.', {
    default: true,
  }),
  force_camel_case_to_snake_case: flag(
    'Whether column names in requests are rewritten from userId to user_id.',
    {
      default: false,
    },
  ),
  max_rows: integer('Largest number of rows in one answer.', { min: 1, max: 1_000_000 }, { default: 10_000 }),
  logging_client: text(
    'Client whose database has the log and audit tables.',
    { default: 'logging' },
    clientNameForm,
  ),
  pipelines_file: Type.Optional(
    text('File of named pipelines. It is read at the start and on SIGHUP.', {
      absent: 'pipelines.yaml in the working folder, if there is one',
    }),
  ),
  cache: section('Cache of answers to reads.', {
    ttl: duration(
      'Longest time that an answer is cached; 0 switches the cache off. Writes through the gateway invalidate it at once.',
      ['0s', '0s', '1d'],
    ),
    max_size: size('Memory of one process for cached answers.', ['64MiB', '1MiB', '16GiB']),
  }),
  management: section('Changes of the structure over HTTP.', {
    extensions: list(
      'Extensions of PostgreSQL that a key with management.extensions.write may install.',
      extensionForm,
      EXTENSIONS,
    ),
  }),
  pipelines: section('Pipelines.', {
    timeout: duration('Longest time of a run.', ['15m', '1s', '1d']),
    max_runs: integer(
      'Runs of one process at the same time, and further connections of each client for their reads. A client takes part in at most half of them. Later runs wait 5 seconds; then the answer is 503. Imports have as many of their own.',
      { min: 1, max: 100 },
      { default: 8 },
    ),
    max_errors: integer(
      'Rows that a sink may refuse before a run stops; so with an import.',
      { min: 1, max: 1_000_000 },
      { default: 10_000 },
    ),
    max_groups: integer(
      'Largest number of groups of a run.',
      { min: 1, max: 1_000_000 },
      { default: 100_000 },
    ),
  }),
  custom_supabase: section('The client whose Supabase project and key come with each request.', {
    allowed_hosts: list(
      'Hosts that a request may name; *.example.com allows every host one label below it.',
      hostPatternForm,
      ['*.supabase.co'],
    ),
  }),
  unsafe_clients: list(
    'Clients whose role may be a superuser, or may have access to the server’s files, REPLICATION, or CREATEROLE before PostgreSQL 16. Each start logs a warning about them.',
    clientNameForm,
  ),
})
