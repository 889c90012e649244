import { Type } from 'typebox'
import { HEADER, shownHeader } from '../../http/header-names.ts'
import { hostForm, networkForm, originForm } from '../addresses.ts'
import { duration, flag, integer, list, optionalDuration, section, size, text } from '../setting.ts'

export const server = section('Addresses, files and processes of the service.', {
  host: text('Address to listen on; 0.0.0.0 or :: for all addresses.', { default: '127.0.0.1' }, hostForm),
  port: integer(
    'Port to listen on; 0 picks a free one, which the ready line names.',
    { min: 0, max: 65_535 },
    { default: 8080 },
  ),
  public_url: Type.Optional(
    text(
      'Address of the service for browsers; links in mails, cookies and origin checks use it.',
      { absent: 'http://localhost:{port}' },
      originForm,
    ),
  ),
  data_dir: text('Folder of the embedded database, generated secrets and the outbox.', {
    default: './data',
  }),
  min_free_disk: size(
    'Free space on the disk of server.data_dir below which the disk counts as full and /health/ready answers 503; 0B: never.',
    ['64MiB', '0B', '1048576GiB'],
  ),
  drain: optionalDuration(
    'Time after SIGTERM in which requests are still accepted, while /health/ready answers 503; at most half of limits.shutdown, which includes it.',
    ['0s', '30m'],
    '5s with NODE_ENV=production, but 0s on a terminal; else 0s',
  ),
  workers: integer('Processes that share the port.', { min: 1, max: 128 }, { default: 1 }),
  trusted_proxies: list('Proxies whose X-Forwarded-For is trusted: addresses or CIDR blocks.', networkForm),
})

export const outbound = section('Requests of the service to addresses that callers name.', {
  allow_networks: list('Private networks that are allowed: addresses or CIDR blocks.', networkForm),
  allow_http: flag('Whether plain http is allowed.', { default: false }),
})

export const limits = section('Limits of a request. Each has its own error.', {
  body: size('Largest body of a request.', ['1MiB', '1KiB', '1GiB']),
  body_bulk: size('Largest body of an insert or a pipeline.', ['16MiB', '1KiB', '1GiB']),
  body_import: size('Largest file of an import.', ['1GiB', '1KiB', '1024GiB']),
  import_time: duration('Longest time of an import, its upload included.', ['1h', '1s', '1d']),
  bodies: size(
    'Memory of one process for all request bodies above 16 KiB and the values read from them. Bodies for one client, or from one address where there is no client, use half of it at most.',
    ['512MiB', '64KiB', '1024GiB'],
  ),
  rows: integer(
    'Rows of a fetch without a limit; gateway.max_rows applies to every fetch.',
    { min: 1, max: 1_000_000 },
    { default: 1000 },
  ),
  list: integer(
    'Entries of a list without a limit, unless the endpoint has its own default.',
    { min: 1, max: 100_000 },
    { default: 100 },
  ),
  list_max: integer(
    'Largest number of entries of a list, unless the endpoint has its own.',
    { min: 1, max: 100_000 },
    { default: 1000 },
  ),
  timeout: duration('Longest time of a request.', ['60s', '100ms', '1h']),
  conditions: integer(
    'Largest number of conditions in a request.',
    { min: 1, max: 10_000 },
    { default: 100 },
  ),
  columns: integer(
    'Largest number of columns that a request names.',
    { min: 1, max: 1600 },
    { default: 256 },
  ),
  nesting: integer('Largest depth of nested conditions.', { min: 1, max: 100 }, { default: 10 }),
  relations: integer('Largest depth of nested relations.', { min: 1, max: 10 }, { default: 4 }),
  in_product: integer(
    'Largest number of combinations of the values in all `in` lists of a request to ScyllaDB or Cassandra, where each combination is one look-up.',
    { min: 1, max: 1_000_000 },
    { default: 1000 },
  ),
  insert_rows: integer(
    'Largest number of rows in an insert.',
    { min: 1, max: 10_000_000 },
    { default: 100_000 },
  ),
  operations: integer(
    'Largest number of operations in a transaction.',
    { min: 1, max: 10_000 },
    { default: 100 },
  ),
  idempotent_answer: size(
    'Largest answer that is stored for an idempotency key; of a longer answer, digests and counts are stored.',
    ['1MiB', '1KiB', '1GiB'],
  ),
  answer: size(
    'Largest answer that is collected in memory before it is sent: with a count, grouped, or of writes, functions, SQL and transactions.',
    ['32MiB', '1KiB', '1GiB'],
  ),
  min_rate: size(
    'Bytes per second that the reader of a streamed answer has to take, and the sender of an import has to send; either may fall behind by ten seconds.',
    ['16KiB', '1KiB', '1GiB'],
  ),
  stream_time: duration(
    'Longest time of a streamed answer, which ends unfinished then. The file of a backup may take longer.',
    ['10m', '1s', '1d'],
  ),
  streams: integer(
    'Streams of live rows of one process. Each holds a connection.',
    { min: 1, max: 1_000_000 },
    { default: 5000 },
  ),
  streams_per_caller: Type.Optional(
    integer(
      'The same for one API key, or one session that operates.',
      { min: 1, max: 1_000_000 },
      { absent: 'half of limits.streams' },
    ),
  ),
  streams_per_address: integer(
    'The same for one address, or the /64 of an IPv6 address.',
    { min: 1, max: 1_000_000 },
    { default: 100 },
  ),
  stream_tables: integer('Largest number of tables in a stream.', { min: 1, max: 100 }, { default: 16 }),
  stream_buffer: size(
    'Events of a stream that may wait for its reader. Beyond it the reader is told the latest changes only; one that takes nothing for ten seconds loses the stream.',
    ['256KiB', '64KiB', '1GiB'],
  ),
  stream_keys: size(
    'Memory of one process for the keys of rows that its streams have been shown, by which rows that leave are told. Beyond it the stream with the most of them ends with a reset.',
    ['256MiB', '1MiB', '1024GiB'],
  ),
  insert_window: duration(`Longest ${shownHeader(HEADER.insertWindow)}.`, ['60s', '1ms', '60s']),
  header: size('Largest size of all headers of a request.', ['16KiB', '4KiB', '1MiB']),
  connections: Type.Optional(
    integer(
      'Connections that one process accepts. Beyond it the longest without a request is closed, or the answer is 503.',
      { min: 1, max: 1_000_000 },
      {
        absent:
          'the open files that the system allows, less a quarter or what the service itself needs; at most 10000',
      },
    ),
  ),
  connections_per_address: Type.Optional(
    integer(
      'The same for one address, or the /64 of an IPv6 address; trusted proxies have no limit of their own.',
      { min: 1, max: 1_000_000 },
      { absent: 'half of limits.connections' },
    ),
  ),
  shutdown: duration(
    'Longest time from SIGTERM to the end: requests and jobs finish, then PostgreSQL shuts down; what is left is killed.',
    ['25s', '0s', '1h'],
  ),
})
