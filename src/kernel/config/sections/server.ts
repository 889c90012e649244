import { Type } from 'typebox'
import { hostForm, networkForm, originForm } from '../addresses.ts'
import { duration, flag, integer, list, section, size, text } from '../setting.ts'

export const server = section('Where the service listens and where it keeps its files.', {
  host: text('Address to listen on; 0.0.0.0 or :: for all of them.', { default: '127.0.0.1' }, hostForm),
  port: integer(
    'Port to listen on; 0 picks a free one and the ready line tells which.',
    { min: 0, max: 65_535 },
    { default: 8080 },
  ),
  public_url: Type.Optional(
    text(
      'Where browsers reach the service: links in mail, cookies and origin checks are built from it.',
      { absent: 'http://localhost:{port}' },
      originForm,
    ),
  ),
  data_dir: text('Folder of the embedded database, generated secrets, outbox and backups.', {
    default: './data',
  }),
  min_free_disk: size(
    'Room on the disk of server.data_dir below which it counts as full and /health/ready is 503; 0B: never.',
    ['64MiB', '0B', '1048576GiB'],
  ),
  workers: integer('Processes that share the port.', { min: 1, max: 128 }, { default: 1 }),
  trusted_proxies: list('Proxies whose X-Forwarded-For is believed: addresses or CIDR blocks.', networkForm),
})

export const outbound = section('Requests that the service makes to addresses which a caller named.', {
  allow_networks: list(
    'Private networks that may be reached all the same: addresses or CIDR blocks.',
    networkForm,
  ),
  allow_http: flag('Whether plain http is allowed.', { default: false }),
})

export const limits = section('Limits of a request. Each answers with its own error.', {
  body: size('Body of a request.', ['1MiB', '1KiB', '1GiB']),
  body_bulk: size('Body of an insert or a pipeline.', ['16MiB', '1KiB', '1GiB']),
  bodies: size(
    'Memory that bodies above 16 KiB take together in a process, with what they are read into; those for one client, or of one address where there is none, take half at most.',
    ['512MiB', '64KiB', '1024GiB'],
  ),
  rows: integer(
    'Rows of a fetch that names no limit; gateway.max_rows holds for all.',
    { min: 1, max: 1_000_000 },
    { default: 1000 },
  ),
  list: integer(
    'Rows of a list that names no limit, where the endpoint has no number of its own.',
    { min: 1, max: 100_000 },
    { default: 100 },
  ),
  list_max: integer(
    'Most rows of a list, where the endpoint has no number of its own.',
    { min: 1, max: 100_000 },
    { default: 1000 },
  ),
  timeout: duration('Time for a whole request.', ['60s', '100ms', '1h']),
  conditions: integer('Conditions of a request.', { min: 1, max: 10_000 }, { default: 100 }),
  columns: integer('Columns that a request names.', { min: 1, max: 1600 }, { default: 256 }),
  nesting: integer('Depth of nested conditions.', { min: 1, max: 100 }, { default: 10 }),
  relations: integer('Depth of relations in relations.', { min: 1, max: 10 }, { default: 4 }),
  in_product: integer(
    'Combinations of the values of all in lists of a request to ScyllaDB or Cassandra, where each is a look-up of its own.',
    { min: 1, max: 1_000_000 },
    { default: 1000 },
  ),
  insert_rows: integer('Rows of an insert.', { min: 1, max: 10_000_000 }, { default: 100_000 }),
  operations: integer('Operations of a transaction.', { min: 1, max: 10_000 }, { default: 100 }),
  idempotent_answer: size(
    'Bytes of an answer that is kept under an idempotency key; of a longer one its digests and counts are.',
    ['1MiB', '1KiB', '1GiB'],
  ),
  answer: size(
    'Rows that are held until all are there: with a count, grouped, returned by writes, functions, SQL or a transaction.',
    ['32MiB', '1KiB', '1GiB'],
  ),
  min_rate: size(
    'Bytes a second that the reader of a streamed answer takes at least, ten seconds in arrears at most.',
    ['16KiB', '1KiB', '1GiB'],
  ),
  insert_window: duration('Longest X-Service-Insert-Window.', ['60s', '1ms', '60s']),
  header: size('Headers of a request together.', ['16KiB', '4KiB', '1MiB']),
  shutdown: duration(
    'Time from SIGTERM to the end: requests and jobs finish, PostgreSQL shuts down; the rest is killed.',
    ['25s', '0s', '1h'],
  ),
})
