import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { chunksOf, streamBodies } from '#kernel/http/bodies/streamed-body.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createRunLimit } from '../bulk/run-limit.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { success, successOf } from '../envelope.ts'
import { fail } from '../errors.ts'
import { importRows } from './import.ts'
import { aliasesIn, DELIMITERS } from './import-options.ts'
import { type ImportFormat, type ImportRequest, resultOf } from './import-result.ts'

const ImportQuery = Type.Object(
  {
    table_name: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'The table, optionally as schema.table',
        examples: ['books'],
      }),
    ),
    table: Type.Optional(Type.String({ description: 'Alias of table_name', 'x-alias-of': 'table_name' })),
    schema_name: Type.Optional(
      Type.String({ description: 'The schema. Default: public', examples: ['public'] }),
    ),
    format: Type.Optional(
      OneOf(['csv', 'jsonl'], { description: 'Default: by Content-Type, text/csv or application/x-ndjson' }),
    ),
    delimiter: Type.Optional(
      OneOf(Object.keys(DELIMITERS) as (keyof typeof DELIMITERS)[], {
        description: 'Between the cells of CSV. Default: comma',
      }),
    ),
    columns: Type.Optional(
      Type.String({
        description:
          'JSON object: name in the file to column of the table; null leaves it out. Others keep their name',
        examples: ['{"Book title": "title", "notes": null}'],
      }),
    ),
    on_conflict: Type.Optional(
      Type.String({
        description: 'Column or columns of a unique constraint. Rows that exist already are skipped',
        examples: ['id'],
      }),
    ),
    default_to_null: Type.Optional(
      Type.Boolean({ description: "Missing members of a line become null instead of the column's default" }),
    ),
    dry_run: Type.Optional(Type.Boolean({ description: 'Check each row in the database, and store none' })),
    api_key: Type.Optional(Type.String({ description: 'The API key, if headers cannot be sent' })),
  },
  // A misspelt dry_run would store rows.
  { additionalProperties: false },
)

const count = (description: string) => Type.Integer({ description })
const Imported = Type.Object(
  {
    rows_read: count('Rows of the file'),
    rows_inserted: count('Rows that are stored'),
    would_insert: count('Rows that a dry run has stored and undone, otherwise 0'),
    rows_skipped: count('Rows that existed already, with on_conflict'),
    rows_refused: count('Rows that cannot be read, or that the database refuses'),
    dry_run: Type.Boolean(),
    errors: Type.Array(
      Type.Object(
        {
          row: count('Number of the row from 1, without the line of names'),
          line: count('Line of the file where the row begins'),
          column: Type.Optional(
            Type.String({ description: 'The column whose value is refused, where that is known' }),
          ),
          error: Type.String(),
          code: Type.String(),
        },
        named('BadRow'),
      ),
      { description: 'Refused rows, at most 10,000, in the order of the file' },
    ),
    errors_truncated: Type.Optional(Type.Boolean({ description: 'More rows were refused' })),
    stopped: Type.Optional(
      OneOf(['too_many_errors'], {
        description: 'The import has stopped because of gateway.pipelines.max_errors refused rows',
      }),
    ),
  },
  named('RowsImported'),
)

const CODES = [
  'invalid_import',
  'invalid_file',
  'too_many_imports',
  'import_timeout',
  'import_stopped',
  'caller_changed',
  'client_changed',
]

/** The last statement of an import may end this much later, in milliseconds. */
const LAST_STATEMENT = 60_000

export function importRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const { limits, gateway } = kernel.config
  const imports = createRunLimit(gateway.pipelines.max_runs, () =>
    fail('too_many_imports', { headers: { 'retry-after': '5' } }),
  )
  const stopping = new AbortController()
  app.addHook('preClose', async () => stopping.abort())
  streamBodies(app)
  const validated = app.validatorCompiler
  if (validated === undefined) throw new Error('The surface has no validation yet')
  app.route({
    method: 'POST',
    url: '/gateway/import',
    bodyLimit: limits.body_import,
    config: {
      access: access.data,
      failures: [...FAILURES_OF.data, ...CODES],
      timeout: limits.import_time + LAST_STATEMENT,
    },
    schema: {
      operationId: 'importRows',
      summary: 'Insert the rows of a file of CSV or JSON lines',
      description:
        'The file is read as it arrives. Rows are stored in batches: after a failure its details say how many are. Bad rows are reported by their number, and the others are stored.',
      consumes: ['text/csv', 'application/x-ndjson'],
      body: Type.String({
        description: 'The file',
        examples: ['title,author,pages\nSketches,Ada Lovelace,42\n'],
      }),
      querystring: ImportQuery,
      response: {
        200: Type.Object({ ...successOf(Imported).properties, affected_rows: Type.Integer() }),
      },
    },
    // The body is a stream.
    validatorCompiler: (part) => (part.httpPart === 'body' ? (value) => ({ value }) : validated(part)),
    handler: async (request, reply) => {
      const { client } = gatewayCaller(request)
      const format = formatOf(request)
      const release = await imports.acquire([client.name])
      const over = new AbortController()
      try {
        const asked = requestOf(request, reply, {
          kernel,
          access,
          format,
          stopping: stopping.signal,
          over: over.signal,
        })
        const result = await importRows(request.kernel, asked)
        const data = resultOf(result)
        const message = result.dryRun
          ? `Checked ${data.rows_read} rows`
          : `Imported ${data.rows_inserted} rows`
        return { ...success(message, data), affected_rows: data.rows_inserted }
      } finally {
        over.abort()
        release()
      }
    },
  })
}

type ImportQuery = Static<typeof ImportQuery>
type Asked = FastifyRequest<{ Querystring: ImportQuery }>

/** Content types by the format of their files. */
const TYPES: Readonly<Record<string, ImportFormat>> = {
  'text/csv': 'csv',
  'application/csv': 'csv',
  'application/x-ndjson': 'jsonl',
  'application/ndjson': 'jsonl',
  'application/jsonl': 'jsonl',
  'application/json-lines': 'jsonl',
}

function formatOf({ query, headers }: Asked): ImportFormat {
  const [type = ''] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const format = query.format ?? TYPES[type.trim()]
  if (format !== undefined) return format
  throw edge('unsupported_media_type', {
    message: 'Send the file as text/csv or application/x-ndjson, or name its format',
    details: { available: ['text/csv', 'application/x-ndjson'] },
  })
}

type Circumstances = {
  readonly kernel: Kernel
  readonly access: GatewayAccess
  readonly format: ImportFormat
  readonly stopping: AbortSignal
  /** Aborted when the import has ended. */
  readonly over: AbortSignal
}

function requestOf(
  request: Asked,
  reply: FastifyReply,
  { kernel, access, format, stopping, over }: Circumstances,
): ImportRequest {
  const { limits } = kernel.config
  const {
    columns,
    delimiter = 'comma',
    dry_run: dryRun = false,
    api_key: _,
    format: __,
    ...target
  } = request.query
  const { presence } = gatewayCaller(request)
  const until = performance.now() + limits.import_time
  const bounds = {
    limit: limits.body_import,
    rate: limits.min_rate,
    now: () => kernel.now().getTime(),
    signal: over,
  }
  // One batch is stored while the next one is read.
  request.openBody(() => {}).settle(limits.body_bulk)
  return {
    format,
    delimiter: DELIMITERS[delimiter],
    target,
    aliases: aliasesIn(columns),
    dryRun,
    chunks: chunksOf(request.body as unknown as IncomingMessage, bounds), // streamBodies
    caller: () => access.renew.again(request, reply),
    end() {
      if (presence.hasLeft()) return fail('statement_timeout', { hint: 'The caller has left.' })
      if (stopping.aborted)
        return fail('import_stopped', { hint: 'Send the file again when the service runs.' })
      if (performance.now() <= until) return undefined
      return fail('import_timeout', {
        hint: `An import takes at most ${limits.import_time / 1_000} seconds (limits.import_time).`,
      })
    },
  }
}
