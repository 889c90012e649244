import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline/promises'
import { closedFile } from '#kernel/data-folder.ts'
import { escapeInvisible, escapeInvisibleInLine } from '#kernel/invisible-characters.ts'
import { WrongUsage } from './wrong-usage.ts'

/**
 * Standard input and output of the commands. Names, addresses and messages are untrusted, so control characters in them are escaped
 * (`escapeInvisible`) and cannot control the terminal.
 */
export const terminal = {
  get isInteractive(): boolean {
    return process.stdout.isTTY === true
  },
  /** Whether stderr, which progress is written to, is a terminal. */
  get showsProgress(): boolean {
    return process.stderr.isTTY === true
  },
  get input(): NodeJS.ReadStream {
    return process.stdin
  },
  /** Reads one line from the terminal. */
  async ask(question: string): Promise<string> {
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    try {
      return await lines.question(escapeInvisible(question))
    } finally {
      lines.close()
    }
  },
  say: (line: string): void => void process.stdout.write(`${escapeInvisible(line)}\n`),
  /** Prints a text (the file of a mail) unchanged, unless stdout is a terminal. */
  sayRaw: (text: string): void =>
    process.stdout.isTTY === true
      ? terminal.say(text.replaceAll('\r\n', '\n'))
      : void process.stdout.write(`${text}\n`),
  /** Writes bytes of a file to standard output unchanged, as fast as its reader takes them. */
  async pass(bytes: Buffer): Promise<void> {
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain')
  },
  warn: (line: string): void => void process.stderr.write(`${escapeInvisible(line)}\n`),
}

/** Asks at a terminal before a change that cannot be undone. A script is not asked. */
export async function expectConsent(consequence: string): Promise<void> {
  if (!terminal.isInteractive || terminal.input.isTTY !== true) return
  const answer = await terminal.ask(`${consequence} Go on? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new Error('Nothing was changed.')
}

/** Reads all of standard input, without the final line break. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  // The stream has no encoding, so it yields buffers.
  for await (const chunk of terminal.input) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}

/** Prints a list as a table, or as JSON with `--json`. */
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
    : escapeInvisibleInLine(value instanceof Date ? value.toISOString() : String(value))

export const isBug = (error: unknown): error is TypeError | ReferenceError =>
  error instanceof TypeError || error instanceof ReferenceError

/** Prints the error as one sentence, or with its stack if it is a bug, and exits with 1, or with 2 for wrong usage. */
export async function fatal(error: unknown): Promise<never> {
  const text = isBug(error) ? (error.stack ?? error.message) : sentenceOf(error)
  if (!process.stderr.write(`${escapeInvisible(text)}\n`)) await once(process.stderr, 'drain')
  process.exit(error instanceof WrongUsage ? 2 : 1)
}

/** The message of an error. Files are named by absolute path. If several addresses of a host failed, the first error is reported. */
export function sentenceOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return sentenceOf(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  const { path: file, code, syscall } = error as NodeJS.ErrnoException // a file error has all three
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return `${file === undefined ? 'A file' : path.resolve(file)} cannot be written, since its disk is full: free space, and try again.`
  const closed = closedFile(error)
  if (closed !== undefined) return closed
  if (file === undefined || code === undefined || syscall === undefined) return error.message
  return `${path.resolve(file)} ${FILE_PROBLEMS[code] ?? `cannot be used (${syscall}: ${code})`}.`
}

/** The innermost cause says most: for example that the outbound rules forbid the address. */
export function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : {}
  return cause === undefined ? sentenceOf(error) : reasonOf(cause)
}

const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
}
