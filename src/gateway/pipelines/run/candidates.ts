import { eachRow, jsonNulls } from '#databases/drivers/json-rows.ts'
import type { ReadPlan } from '#databases/plan/plan.ts'
import { snakeCased } from '#databases/request/fields.ts'
import { parseJson } from '#databases/request/json.ts'
import type { Row } from '#databases/request/request.ts'
import { fail } from '#gateway/errors.ts'
import { createGrouper, type Group } from '#gateway/grouping/grouper.ts'
import {
  createGroupingMemory,
  type Grouping,
  hiddenColumns,
  readGrouping,
  withoutHidden,
} from '#gateway/grouping/grouping.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { startTimeSlice } from '#kernel/time-slice.ts'
import { bodyOf, type Transform } from '../definition.ts'

/** Rows for the sink: those of the source or its groups, with the names of the sink. */
export type Candidates = {
  readonly rows: readonly Row[]
  /** The same rows as JSON texts with every digit, if texts are wanted. */
  texts(): Iterable<string>
}

/** The candidates of a batch, and the number of rows that were read for them. */
export type Batch = Candidates & { readonly fetched: number }

const NO_COLUMNS: ReadonlySet<string> = new Set()

/** A transform, before the columns of the source are known. */
export type ParsedTransform = {
  readonly grouping: Grouping | undefined
  /** Member of a group → column of the sink. Rows have the names of the sink already. */
  readonly aliases: Aliases
}
/** null leaves a member out. */
export type Aliases = ReadonlyMap<string, string | null>

/** How candidates are made from rows of the source. */
export type Shape = ParsedTransform & {
  /** Columns that are read only for grouping. */
  readonly hidden: ReadonlySet<string>
  /** The columns of the candidates. */
  readonly columns: readonly string[]
}

export function parseTransform({ config }: Kernel, transform: Transform): ParsedTransform {
  const snakeCase = config.gateway.force_camel_case_to_snake_case
  const aliases = Object.entries(transform.column_aliases ?? {})
  return {
    grouping: readGrouping(bodyOf(transform), snakeCase),
    aliases: new Map(aliases.map(([name, as]) => [snakeCase ? snakeCased(name) : name, as])),
  }
}

/** Throws a failure for aliases that do not fit the rows of the source. */
export function shapeOf(plan: ReadPlan, { grouping, aliases }: ParsedTransform): Shape {
  const members = grouping === undefined ? plan.output.map(({ as }) => as) : groupMembers(grouping, aliases)
  const unknown = [...aliases.keys()].find((name) => !members.includes(name))
  if (unknown !== undefined)
    throw malformed(`column_aliases names ${unknown}, which is no column of the rows`, { column: unknown })
  const columns = members.flatMap((name) => aliasOf(aliases, name) ?? [])
  const twice = columns.find((name, index) => columns.indexOf(name) !== index)
  if (twice !== undefined) throw malformed(`Two columns would be written to ${twice}`, { column: twice })
  if (columns.length === 0) throw malformed('column_aliases leaves out every column')
  const hidden = grouping === undefined ? NO_COLUMNS : hiddenColumns(plan, grouping)
  return { grouping, hidden, aliases, columns }
}

const malformed = (message: string, details: object = {}) =>
  fail('invalid_pipeline', { message, details: { field: 'transform.column_aliases', ...details } })

const COUNT = 'count'

function groupMembers({ groupBy, column }: Grouping, aliases: Aliases): readonly string[] {
  if (column === groupBy)
    throw fail('invalid_pipeline', {
      message: 'group_by and aggregation_column are the same column',
      details: { field: 'transform.aggregation_column' },
    })
  const named = column === undefined ? [groupBy] : [groupBy, column]
  return aliases.has(COUNT) && !named.includes(COUNT) ? [...named, COUNT] : named
}

export function aliasOf(aliases: Aliases, name: string): string | null {
  const alias = aliases.get(name)
  return alias === undefined ? name : alias
}

type Options = {
  readonly maxGroups: number
  /** Columns of the sink that can hold a JSON null. */
  readonly jsonColumns: ReadonlySet<string>
  /** Texts keep the JSON of a batch in memory until its rows are stored. */
  readonly wantsTexts: () => boolean
}

/** Yields candidates for each batch of rows. For groups, the batches have none until all rows are read. */
export async function* candidatesOf(
  batches: AsyncIterable<string>,
  shape: Shape,
  { maxGroups, jsonColumns, wantsTexts }: Options,
): AsyncGenerator<Batch> {
  if (shape.grouping === undefined) {
    for await (const batch of batches) {
      const rows = rowsOf(batch, jsonColumns)
      yield { rows, texts: textsOf(batch, wantsTexts), fetched: rows.length }
    }
    return
  }
  const grouper = createGrouper(shape.grouping, createGroupingMemory(maxGroups))
  for await (const batch of batches) {
    const fetched = await addRows(batch, shape.hidden, (row, returned) => grouper.add(row, returned))
    yield { ...NONE, fetched }
  }
  for await (const batch of groupTexts(grouper.groups(), shape.grouping, shape.aliases))
    yield { rows: rowsOf(batch, NO_COLUMNS), texts: textsOf(batch, wantsTexts), fetched: 0 }
}

const NONE: Candidates = { rows: [], texts: () => [] }

const textsOf = (batch: string, wantsTexts: Options['wantsTexts']): Candidates['texts'] =>
  wantsTexts() ? () => eachRow(`[${batch}]`) : NONE.texts

function rowsOf(batch: string, jsonColumns: ReadonlySet<string>): readonly Row[] {
  const json = `[${batch}]`
  const rows = parseJson(json) as Row[] // a list of row objects
  const hasJsonNull = jsonColumns.size > 0 && batch.includes(JSON_NULL)
  return hasJsonNull ? withJsonNulls(rows, json, jsonColumns) : rows
}

/** `Driver.stream` writes a JSON null so; it can also be inside of a json value. */
const JSON_NULL = ':\tnull'

/** Parsing makes JSON null and SQL NULL the same. A JSON null becomes raw JSON, which is a value. */
function withJsonNulls(rows: readonly Row[], json: string, columns: ReadonlySet<string>): readonly Row[] {
  const texts = eachRow(json)
  return rows.map((row) => {
    const nulls = [...jsonNulls(texts.next().value ?? '')].filter((name) => columns.has(name))
    return { ...row, ...Object.fromEntries(nulls.map((name) => [name, JSON.rawJSON('null')])) }
  })
}

async function addRows(
  batch: string,
  hidden: ReadonlySet<string>,
  add: (row: string, returned: string) => void,
): Promise<number> {
  const slice = startTimeSlice()
  let rows = 0
  for (const row of eachRow(`[${batch}]`)) {
    add(row, withoutHidden(row, hidden))
    rows++
    if (slice.isOver()) await slice.next()
  }
  return rows
}

/** Groups that become candidates together. */
const GROUPS = 5_000

async function* groupTexts(
  groups: AsyncIterable<Group>,
  grouping: Grouping,
  aliases: Aliases,
): AsyncGenerator<string> {
  let texts: string[] = []
  for await (const group of groups) {
    texts.push(groupText(group, grouping, aliases))
    if (texts.length < GROUPS) continue
    yield texts.join(',')
    texts = []
  }
  if (texts.length > 0) yield texts.join(',')
}

/** `{ [group_by]: label, [aggregation_column]: sum }`, and `count` if an alias names it, under the names of the sink. */
function groupText(
  { label, sum, cumulativeSum, count }: Group,
  { groupBy, column, strategy }: Grouping,
  aliases: Aliases,
): string {
  const members: [name: string, json: string | number][] = [[groupBy, JSON.stringify(label)]]
  if (column !== undefined) members.push([column, strategy === undefined ? sum : cumulativeSum])
  if (aliases.has(COUNT) && groupBy !== COUNT && column !== COUNT) members.push([COUNT, count])
  const texts = members.flatMap(([name, json]) => {
    const alias = aliasOf(aliases, name)
    return alias === null ? [] : [`${JSON.stringify(alias)}:${json}`]
  })
  return `{${texts.join(',')}}`
}
