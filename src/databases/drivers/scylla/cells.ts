import { createRequire } from 'node:module'
import { type CqlType, dataTypes, typeOfClass } from '#databases/drivers/scylla/types.ts'
import { isSystem } from '#kernel/config/scylla-url.ts'

/**
 * The library makes an object of each row: of two columns with the same name it loses one, and it always loses `__proto__`. It also changes
 * empty and nested values. So this module makes its parser read each cell as bytes under the column's position, and keeps types and names
 * separately. The library's own queries in the server's keyspaces are unchanged.
 */
export type Cells = Readonly<Record<number, Buffer | null>>
export type CellColumn = { readonly name: string; readonly type: CqlType }
export type Page = {
  readonly columns: readonly CellColumn[]
  readonly rows: readonly Cells[]
  /** Paging state, when another page follows. */
  readonly after: string | undefined
}

/** Metadata that the parser reads before rows and parameters. Missing in the library's types; its version is pinned. */
type Column = {
  readonly name: string
  readonly type: CqlType
  readonly ksname?: string
  readonly cell?: CellColumn
}
type Metadata = { readonly keyspace?: string; columns: readonly Column[] }
type FrameReader = {
  readMetadata(this: FrameReader, kind: number): Metadata
  readType(this: FrameReader): CqlType
}

const { FrameReader } = createRequire(import.meta.url)('cassandra-driver/lib/readers.js') as {
  readonly FrameReader: { readonly prototype: FrameReader }
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

/** Converts a result of the library. */
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
      const { cell } = column as { readonly cell?: CellColumn } // as made above
      if (cell === undefined) throw new Error('The library has parsed a row by itself')
      return cell
    }),
    rows: (rows ?? []) as readonly Cells[],
    after: pageState ?? undefined,
  }
}

/** Whether a conditional write was applied; an unconditional one always is. The cell `[applied]` is one byte, 0 for false. */
export function wasApplied({ columns, rows }: Page): boolean {
  const at = columns.findIndex(({ name }) => name === '[applied]')
  return at < 0 || rows[0]?.[at]?.[0] !== 0
}
