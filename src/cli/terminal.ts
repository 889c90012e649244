import { once } from 'node:events'
import path from 'node:path'
import { visible, visibleLine } from '#kernel/visible.ts'

/**
 * The process's own ends; everything that the commands read and write goes through here. Names, addresses and messages come from
 * strangers, so no character of them commands the terminal (`visible`).
 */
export const terminal = {
  get isInteractive(): boolean {
    return process.stdout.isTTY === true
  },
  /** Whether somebody looks at what is no answer: it goes to standard error. */
  get showsProgress(): boolean {
    return process.stderr.isTTY === true
  },
  get input(): NodeJS.ReadStream {
    return process.stdin
  },
  say: (line: string): void => void process.stdout.write(`${visible(line)}\n`),
  /** As it is where no terminal shows it: the file of a mail, for one. */
  sayRaw: (text: string): void =>
    process.stdout.isTTY === true
      ? terminal.say(text.replaceAll('\r\n', '\n'))
      : void process.stdout.write(`${text}\n`),
  warn: (line: string): void => void process.stderr.write(`${visible(line)}\n`),
}

/** All of standard input, without the line break at its end. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  // Without an encoding the stream gives bytes.
  for await (const chunk of terminal.input) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** What a command prints where a list is asked for: a table for people, or `--json`. */
export function printList(
  rows: readonly Record<string, unknown>[],
  columns: readonly string[],
  json: boolean,
): void {
  if (json || rows.length === 0) {
    terminal.say(json ? JSON.stringify(rows, null, 2) : 'none')
    return
  }
  const cells = rows.map((row) => columns.map((column) => textOf(row[column])))
  const widths = columns.map((column, index) =>
    Math.max(column.length, ...cells.map((row) => row[index]?.length ?? 0)),
  )
  for (const row of [columns, ...cells]) {
    terminal.say(
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
  }
}

const textOf = (value: unknown): string =>
  value === null || value === undefined
    ? '–'
    : visibleLine(value instanceof Date ? value.toISOString() : String(value))

/** Says what went wrong in a sentence and ends with 1; the stack is for bugs. */
export async function fatal(error: unknown): Promise<never> {
  const isBug = error instanceof TypeError || error instanceof ReferenceError
  const text = isBug ? (error.stack ?? error.message) : sentenceOf(error)
  if (!process.stderr.write(`${visible(text)}\n`)) await once(process.stderr, 'drain')
  process.exit(1)
}

/** Files are told by their whole path. What failed at several addresses of a name failed for the first one's reason. */
export function sentenceOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return sentenceOf(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  const { path: file, code, syscall } = error as NodeJS.ErrnoException // a file error has all three
  if (file === undefined || code === undefined || syscall === undefined) return error.message
  return `${path.resolve(file)} cannot be used (${syscall}: ${code}).`
}
