import { Type } from 'typebox'
import type { Body } from '#databases/request/fields.ts'
import { readTableName } from '#databases/request/table-name.ts'
import type { Config } from '#kernel/config/config.ts'
import { named } from '#kernel/http/document/components.ts'
import { NOT_EMPTY, OneOf, Parsed } from '#kernel/http/schemas.ts'
import { columnsOf, conditionsOf } from '../data/grammar.ts'

type NamedTable = {
  readonly table_name?: string
  /** Aliases of table_name (gateway.md 1). */
  readonly table?: string
  readonly view_name?: string
}

/** Where the rows come from. */
export type Source = NamedTable & {
  readonly schema_name?: string
  /** As in a fetch, like the conditions. */
  readonly columns?: unknown
  readonly conditions?: unknown
  /** Absent: all rows. */
  readonly limit?: number
  /** Absent: the client of the request. */
  readonly client?: string
}

export type Transform = {
  readonly group_by?: string
  readonly time_granularity?: 'day' | 'hour' | 'minute'
  readonly aggregation_column?: string
  readonly aggregation_strategy?: 'cumulative_sum'
  readonly aggregation_dedup?: boolean
  /** Source column → sink column; null leaves the column out. */
  readonly column_aliases?: Readonly<Record<string, string | null>>
}

export type Sink = NamedTable & {
  readonly schema_name?: string
  readonly client?: string
  /** Columns of a unique constraint: rows that exist already are skipped. */
  readonly on_conflict?: unknown
}

/** A pipeline of the file, or the parts of a request. */
export type PipelineDefinition = {
  readonly description?: string
  readonly source?: Source
  readonly transform?: Transform
  readonly sink?: Sink
}

export type PipelineBody = Pick<PipelineDefinition, 'source' | 'transform' | 'sink'> & {
  /** The name of a pipeline of the file. */
  readonly pipeline?: string
  readonly dry_run?: boolean
}

/** The members of a part as a body of a data operation. */
export const bodyOf = (part: object): Body => ({ ...part })

/** The table of a part by any of its spellings, which must not contradict each other. */
export const tableNameOf = (part: NamedTable): string | undefined => readTableName(bodyOf(part))

const text = (description: string, ...examples: string[]) =>
  Type.Optional(Type.String({ minLength: 1, description, ...(examples.length > 0 && { examples }) }))

const aliasOfTableName = Type.Optional(
  Type.String({ minLength: 1, description: 'Alias of table_name', 'x-alias-of': 'table_name' }),
)
const TABLE_ALIASES = { table: aliasOfTableName, view_name: aliasOfTableName }
const schemaName = text('The schema. Default: public', 'public')
const clientOf = (step: string) =>
  Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 63,
      description: `The client of the ${step}. Default: the client of the request`,
      examples: ['reporting'],
    }),
  )

export const Transform = Type.Object(
  {
    group_by: text('Group the rows by this column; each group becomes one row of the sink', 'country'),
    time_granularity: Type.Optional(
      OneOf(['day', 'hour', 'minute'], {
        ...named('TimeGranularity'),
        description: 'Group a time column by its day, hour or minute in UTC',
      }),
    ),
    aggregation_column: text('Compute the exact sum of this column in every group', 'population'),
    aggregation_strategy: Type.Optional(
      OneOf(['cumulative_sum'], {
        description: 'Write cumulative sums over the groups instead of sums. Requires aggregation_column',
      }),
    ),
    aggregation_dedup: Type.Optional(
      Type.Boolean({ description: 'Count rows with the same returned columns once within a group' }),
    ),
    column_aliases: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String({ minLength: 1 }), Type.Null()]), {
        description:
          'Source column to sink column; null leaves the column out. With group_by, `count` adds the number of values',
        examples: [{ name: 'city', population: null }],
      }),
    ),
  },
  { ...named('PipelineTransform'), description: 'How the rows of the source become rows of the sink' },
)

export const Sink = Type.Object(
  {
    table_name: text('The table that the rows are inserted into, optionally as schema.table', 'cities'),
    ...TABLE_ALIASES,
    schema_name: schemaName,
    client: clientOf('sink'),
    on_conflict: Type.Optional(
      Parsed(Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1 })]), {
        description: 'The column or columns of a unique constraint. Rows that exist already are skipped',
        examples: ['id'],
      }),
    ),
  },
  { ...named('PipelineSink'), description: 'Where the rows go' },
)

const sourceOf = ({ columns, conditions }: Config['limits']) =>
  Type.Object(
    {
      table_name: text('The table or view that is read, optionally as schema.table', 'books'),
      ...TABLE_ALIASES,
      schema_name: schemaName,
      columns: Type.Optional(Parsed(columnsOf(columns))),
      conditions: Type.Optional(Parsed(conditionsOf(conditions))),
      limit: Type.Optional(
        Type.Integer({ minimum: 0, description: 'Maximum number of rows. Default: all', examples: [1_000] }),
      ),
      client: clientOf('source'),
    },
    { ...named('PipelineSource'), description: 'Where the rows come from' },
  )

/** Schemas of a pipeline of the file, and of the body of a run. */
export function pipelineSchemas({ limits }: Pick<Config, 'limits'>) {
  const Source = sourceOf(limits)
  const parts = {
    source: Type.Optional(Source),
    transform: Type.Optional(Transform),
    sink: Type.Optional(Sink),
  }
  return {
    Source,
    Transform,
    Sink,
    PipelineDefinition: Type.Object(
      { description: Type.Optional(Type.String({ maxLength: 1_000 })), ...parts },
      named('PipelineDefinition'),
    ),
    PipelineBody: Type.Object(
      {
        pipeline: Type.Optional(
          Type.String({
            minLength: 1,
            description: 'A pipeline of the pipelines file. Members given here replace its members',
            examples: ['cities-by-country'],
          }),
        ),
        ...parts,
        dry_run: Type.Optional(
          Type.Boolean({ description: 'Read and transform the rows, but insert none of them' }),
        ),
      },
      {
        ...NOT_EMPTY,
        examples: [
          {
            source: { table_name: 'books', columns: ['title', 'author'] },
            transform: { column_aliases: { title: 'name' } },
            sink: { table_name: 'books_archive' },
          },
        ],
      },
    ),
  }
}
