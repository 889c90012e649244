import { createRequire } from 'node:module'
import { type CqlType, dataTypes, typeOfClass } from '#databases/drivers/scylla/types.ts'
import { isSystem } from '#kernel/config/scylla-url.ts'

/**
 * The library makes an object of each row, with its columns as members: of two columns of one name one is lost, and `__proto__` is
 * lost always. It reads empty and nested values as others than the server sent. So its parser is told here that each cell is bytes
 * and is called by its place; types and names stay beside. The library's own look-ups, in the keyspaces of the server, stay as they are.
 */
export type Cells = Readonly<Record<number, Buffer | null>>
export type CellColumn = { readonly name: string; readonly type: CqlType }
export type Page = {
  readonly columns: readonly CellColumn[]
  readonly rows: readonly Cells[]
  /** State of the page, where another one follows. */
  readonly after: string | undefined
}

/** What the parser reads in front of rows and parameters. Not in the library's types; its version is exact. */
type Column = {
  readonly name: string
  readonly type: CqlType
  readonly ksname?: string
  readonly cell?: CellColumn
}
type Metadata = { readonly keyspace?: string; columns: readonly Column[] }
type Reader = { readMetadata(this: Reader, kind: number): Metadata; readType(this: Reader): CqlType }

const { FrameReader } = createRequire(import.meta.url)('cassandra-driver/lib/readers.js') as {
  readonly FrameReader: { readonly prototype: Reader }
}
const { readMetadata, readType } = FrameReader.prototype
/** Kind of result in the protocol, version 4, section 4.2.5. */
const ROWS = 2
const BYTES: CqlType = { code: dataTypes.blob }

FrameReader.prototype.readMetadata = function (kind) {
  const meta = readMetadata.call(this, kind)
  const keyspace = meta.keyspace ?? meta.columns[0]?.ksname ?? 'system'
  if (kind === ROWS && !isSystem(keyspace))
    meta.columns = meta.columns.map((cell, index) => ({ cell, name: String(index), type: BYTES }))
  return meta
}

FrameReader.prototype.readType = function () {
  const type = readType.call(this)
  const isNamed = type.code === dataTypes.custom && typeof type.info === 'string'
  return (isNamed && typeOfClass(String(type.info))) || type
}

/** Of a result as the library gives it. */
export function pageOf({
  columns,
  rows,
  pageState,
}: {
  readonly columns: readonly object[] | null | undefined
  readonly rows: readonly object[] | undefined
  readonly pageState: string | null | undefined
}): Page {
  return {
    columns: (columns ?? []).map((column) => {
      const { cell } = column as { readonly cell?: CellColumn } // as they were made above
      if (cell === undefined) throw new Error('The library has read a row by itself')
      return cell
    }),
    rows: (rows ?? []) as readonly Cells[],
    after: pageState ?? undefined,
  }
}

/** Whether a write with conditions was done; one without them is always. */
export function wasApplied({ columns, rows }: Page): boolean {
  const at = columns.findIndex(({ name }) => name === '[applied]')
  return at < 0 || rows[0]?.[at]?.[0] !== 0
}
