import type { Column } from '#databases/plan/catalogue.ts'
import { parseJson } from '#databases/request/json.ts'
import type { Json, Row } from '#databases/request/request.ts'
import { readJson } from '#kernel/http/bodies/body.ts'
import type { Line } from '#kernel/lines.ts'
import { fail } from '../errors.ts'
import type { CsvRecord } from './csv-records.ts'

/** Place of a row in its file: its number from 1, without the names of a CSV file, and the line where it begins. */
type Place = { readonly row: number; readonly line: number }

export type BadRow = Place & { readonly error: string; readonly code: string; readonly column?: string }

/** Rows to store, each with its place, and those that cannot be read. */
export type RowBatch = {
  readonly rows: readonly Row[]
  readonly places: readonly Place[]
  readonly bad: readonly BadRow[]
}

/** Name in the file → column of the table; null leaves it out. */
export type Aliases = ReadonlyMap<string, string | null>

/** A column of a CSV file, as a column of the table; undefined when it is left out. */
export type CsvTarget = { readonly name: string; readonly column: Column } | undefined

export async function* csvBatches(
  records: AsyncIterable<readonly CsvRecord[]>,
  targets: readonly CsvTarget[],
): AsyncGenerator<RowBatch> {
  const batch = createBatch()
  for await (const some of records) {
    for (const { line, cells } of some) {
      // An empty line; in a file with one column it is a row whose cell is empty.
      if (cells.length === 1 && cells[0] === null && targets.length > 1) continue
      batch.add(line, lengthOf(cells), () => rowOf(cells, targets))
    }
    if (batch.isFull()) yield batch.take()
  }
  yield batch.take()
}

export async function* jsonBatches(lines: AsyncIterable<Line>, aliases: Aliases): AsyncGenerator<RowBatch> {
  const batch = createBatch()
  for await (const line of lines) {
    const length = 'text' in line ? line.text.length : 0
    batch.add(line.number, length, () => renamed(objectIn(line), aliases))
    if (batch.isFull()) yield batch.take()
  }
  yield batch.take()
}

/** Rows and characters that make a batch. Its rows take about ten times its characters of memory. */
const [ROWS, CHARACTERS] = [5_000, 1_048_576]

function createBatch() {
  let count = 0
  let [rows, places, bad]: [Row[], Place[], BadRow[]] = [[], [], []]
  let characters = 0
  return {
    /** `read` throws an Unreadable. */
    add(line: number, length: number, read: () => Row): void {
      const place = { row: ++count, line }
      characters += length
      try {
        rows.push(read())
        places.push(place)
      } catch (error) {
        if (!(error instanceof Unreadable)) throw error
        const { message, code, column } = error
        bad.push({ ...place, error: message, code, ...(column !== undefined && { column }) })
      }
    },
    isFull: () => rows.length + bad.length >= ROWS || characters >= CHARACTERS,
    take(): RowBatch {
      const taken = { rows, places, bad }
      ;[rows, places, bad] = [[], [], []]
      characters = 0
      return taken
    },
  }
}

/** A row that cannot be read. */
class Unreadable extends Error {
  readonly code: 'invalid_row' | 'invalid_value'
  readonly column: string | undefined
  constructor(code: Unreadable['code'], message: string, column?: string) {
    super(message)
    this.code = code
    this.column = column
  }
}

const lengthOf = (cells: CsvRecord['cells']): number =>
  cells.reduce((sum, cell) => sum + (cell?.length ?? 0), cells.length)

function rowOf(cells: CsvRecord['cells'], targets: readonly CsvTarget[]): Row {
  if (cells.length !== targets.length)
    throw new Unreadable(
      'invalid_row',
      `The row has ${cells.length} cells, and the file has ${targets.length} columns`,
    )
  const row: Record<string, Json> = {}
  targets.forEach((target, index) => {
    if (target !== undefined) row[target.name] = cellValue(cells[index] ?? null, target.column)
  })
  return row
}

/** The database converts texts. JSON, arrays and composite values may be JSON text, as in exported files. */
function cellValue(cell: string | null, { name, base, category }: Column): Json {
  if (cell === null) return null
  if (base === 'json' || base === 'jsonb') {
    const json = jsonIn(cell)
    if (json === undefined)
      throw new Unreadable('invalid_value', `The cell of column ${name} is not JSON`, name)
    // A null would be NULL.
    return json === null ? JSON.rawJSON('null') : json
  }
  const mayBeJson = (category === 'A' && cell.startsWith('[')) || (category === 'C' && cell.startsWith('{'))
  return (mayBeJson ? jsonIn(cell) : undefined) ?? cell
}

const jsonIn = (text: string): Json | undefined => readJson(text, parseJson).json as Json | undefined // of the parser

function objectIn(line: Line): Row {
  if (!('text' in line)) throw new Unreadable('invalid_row', `The line ${line.problem}`)
  const { json, failure } = readJson(line.text, parseJson)
  if (failure !== undefined)
    throw new Unreadable('invalid_row', `The line is not JSON: ${failure.hint ?? failure.message}`)
  if (typeof json !== 'object' || json === null || Array.isArray(json) || JSON.isRawJSON(json))
    throw new Unreadable('invalid_row', 'The line is no JSON object')
  return json as Row
}

function renamed(row: Row, aliases: Aliases): Row {
  if (aliases.size === 0) return row
  const members = Object.entries(row).flatMap(([name, value]): [string, Json][] => {
    const alias = aliases.has(name) ? aliases.get(name) : name
    return alias === null || alias === undefined ? [] : [[alias, value]]
  })
  return Object.fromEntries(members)
}

/** The columns of the table for the names of a CSV file; null for one that is left out. */
export function targetNames(
  names: CsvRecord['cells'],
  aliases: Aliases,
  maximum: number,
): readonly (string | null)[] {
  if (names.length > maximum) throw fail('too_many_columns', { details: { field: 'columns', maximum } })
  const found = names.map((name) => name?.trim() ?? '')
  const unknown = [...aliases.keys()].find((name) => !found.includes(name))
  if (unknown !== undefined)
    throw invalid(`columns names ${JSON.stringify(unknown)}, which is no column of the file`, {
      columns: found,
    })
  const targets = found.map((name) => (aliases.has(name) ? (aliases.get(name) ?? null) : name))
  const written = targets.filter((name) => name !== null)
  const unnamed = targets.indexOf('')
  if (unnamed >= 0)
    throw invalid(
      `Column ${unnamed + 1} of the file has no name; name it in its first line, or leave it out by columns`,
    )
  const twice = written.find((name, index) => written.indexOf(name) < index)
  if (twice !== undefined) throw invalid(`Two columns of the file are for ${twice}`, { column: twice })
  if (written.length === 0) throw invalid('No column of the file is imported')
  if (written.includes('__proto__')) throw invalid('A column cannot be called __proto__')
  return targets
}

const invalid = (message: string, details: object = {}) =>
  fail('invalid_import', { message, details: { field: 'columns', ...details } })
