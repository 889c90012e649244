import type { Parameter } from '#databases/drivers/postgres/sql/sql-builder.ts'

type Step = {
  /** Empty: the unnamed statement. */
  readonly name: string
  /** Undefined: the connection has already prepared `name`. */
  readonly parse: string | undefined
  readonly values: readonly Parameter[]
}

/**
 * One statement in the extended query protocol as one buffer: [Close] [first] [Parse] Bind [Describe] Execute Sync.
 * https://www.postgresql.org/docs/18/protocol-message-formats.html
 */
type Run = Step & {
  /**
   * Runs first in the same implicit transaction: when it fails, the server skips the rest, and its settings end with the transaction
   * (protocol-flow, "Pipelining").
   */
  readonly first?: Step | undefined
  /** Prepared statements to close, to bound their number. */
  readonly close: readonly string[]
  readonly describe: boolean
  /** Flush instead of Sync: the server answers but commits nothing before `SYNC_MESSAGE`. */
  readonly isOpen?: boolean
}

export function encodeRun(run: Run): Buffer {
  const steps = run.first === undefined ? [run] : [run.first, run]
  const closing = run.close.reduce((sum, name) => sum + 8 + name.length, 0)
  const size = steps.reduce((sum, step) => sum + sizeOf(step), closing)
  const out: Out = { buffer: Buffer.allocUnsafe(size), at: 0 }
  for (const name of run.close) writeClose(out, name)
  if (run.first !== undefined) {
    writeStep(out, run.first)
    out.at += EXECUTE.copy(out.buffer, out.at)
  }
  writeStep(out, run)
  if (run.describe) out.at += DESCRIBE_PORTAL.copy(out.buffer, out.at)
  out.at += (run.isOpen ? FLUSH_TAIL : SYNC_TAIL).copy(out.buffer, out.at)
  return out.buffer.subarray(0, out.at)
}

function writeStep(out: Out, step: Step): void {
  if (step.parse !== undefined) writeParse(out, step.name, step.parse)
  writeBind(out, step)
}

/**
 * The same in steps that end with Flush: the server answers each, and commits nothing before Sync. So a caller who leaves in between has
 * changed nothing.
 */
export function encodeParse(sql: string): Buffer {
  const out: Out = { buffer: Buffer.allocUnsafe(Buffer.byteLength(sql) + 64), at: 0 }
  writeParse(out, '', sql)
  out.at += DESCRIBE_STATEMENT.copy(out.buffer, out.at)
  return out.buffer.subarray(0, out.at)
}

export function encodeExecute(values: readonly Parameter[]): Buffer {
  const step: Step = { name: '', parse: undefined, values }
  const out: Out = { buffer: Buffer.allocUnsafe(sizeOf(step)), at: 0 }
  writeBind(out, step)
  out.at += FLUSH_TAIL.copy(out.buffer, out.at)
  return out.buffer.subarray(0, out.at)
}

type Out = { readonly buffer: Buffer; at: number }

/** An upper bound: names are short and ASCII. */
function sizeOf({ name, parse, values }: Step): number {
  const bytes = values.reduce((sum, value) => sum + 4 + (value === null ? 0 : Buffer.byteLength(value)), 0)
  return 160 + 3 * name.length + (parse === undefined ? 0 : Buffer.byteLength(parse)) + bytes
}

function writeClose(out: Out, name: string): void {
  const end = begin(out, 0x43) // C
  byte(out, 0x53) // S: a statement
  text(out, name)
  end()
}

function writeParse(out: Out, name: string, sql: string): void {
  const end = begin(out, 0x50) // P
  text(out, name)
  text(out, sql)
  int16(out, 0) // the server infers the types
  end()
}

function writeBind(out: Out, { name, values }: Step): void {
  const end = begin(out, 0x42) // B
  byte(out, 0) // the unnamed portal
  text(out, name)
  int16(out, 0) // all parameters as text
  int16(out, values.length)
  for (const value of values) {
    const length = value === null ? -1 : writeValue(out, value, out.at + 4)
    out.at = out.buffer.writeInt32BE(length, out.at) + Math.max(0, length)
  }
  int16(out, 0) // all results as text
  end()
}

function writeValue({ buffer }: Out, value: string | Buffer, at: number): number {
  return typeof value === 'string' ? buffer.write(value, at) : value.copy(buffer, at)
}

/** Writes the type of a message and reserves its length, which the returned function fills in. */
function begin(out: Out, type: number): () => void {
  byte(out, type)
  const start = out.at
  out.at += 4
  return () => out.buffer.writeInt32BE(out.at - start, start)
}

function byte(out: Out, value: number): void {
  out.at = out.buffer.writeUInt8(value, out.at)
}

function int16(out: Out, value: number): void {
  out.at = out.buffer.writeUInt16BE(value, out.at)
}

/** Names and SQL never contain NUL: names are hashes, and SQL is checked where it is written (sql/statements.ts). */
function text(out: Out, value: string): void {
  out.at += out.buffer.write(value, out.at)
  byte(out, 0)
}

const DESCRIBE_PORTAL = Buffer.from([0x44, 0, 0, 0, 6, 0x50, 0]) // D, the unnamed portal
const EXECUTE = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0]) // E, the unnamed portal, all rows
const SYNC = [0x53, 0, 0, 0, 4] // S
const FLUSH = [0x48, 0, 0, 0, 4] // H
const DESCRIBE_STATEMENT = Buffer.from([0x44, 0, 0, 0, 6, 0x53, 0, ...FLUSH]) // D, the unnamed statement
const FLUSH_TAIL = Buffer.from([...EXECUTE, ...FLUSH])
export const SYNC_MESSAGE = Buffer.from(SYNC)
const SYNC_TAIL = Buffer.from([...EXECUTE, ...SYNC])
