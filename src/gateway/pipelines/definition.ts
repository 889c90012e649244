import { type Static, Type } from 'typebox'
import type { Body } from '#databases/request/fields.ts'
import { readTableName } from '#databases/request/table-name.ts'
import type { Config } from '#kernel/config/config.ts'
import { named } from '#kernel/http/document/components.ts'
import { NOT_EMPTY, OneOf, Parsed } from '#kernel/http/schemas.ts'
import { columnsOf, conditionsOf } from '../data/grammar.ts'

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

const Transform = Type.Object(
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

const Sink = Type.Object(
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
  const parts = {
    source: Type.Optional(sourceOf(limits)),
    transform: Type.Optional(Transform),
    sink: Type.Optional(Sink),
  }
  return {
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

type Schemas = ReturnType<typeof pipelineSchemas>

/** Where the rows come from. */
export type Source = Static<ReturnType<typeof sourceOf>>
export type Transform = Static<typeof Transform>
export type Sink = Static<typeof Sink>
/** A pipeline of the file, or the parts of a request. */
export type PipelineDefinition = Static<Schemas['PipelineDefinition']>
export type PipelineBody = Static<Schemas['PipelineBody']>

/** The members of a part as a body of a data operation. */
export const bodyOf = (part: object): Body => ({ ...part })

/** The table of a part by any of its spellings, which must not contradict each other. */
export const tableNameOf = (part: Source | Sink): string | undefined => readTableName(bodyOf(part))
