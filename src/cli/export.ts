import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { Command, Option } from 'commander'
import { createOperator } from '#gateway/caller/operator-caller.ts'
import { type ExportFormat, estimateRows, exportRows } from '#gateway/data/export.ts'
import { interrupted } from './interrupted.ts'
import { showProgress } from './progress.ts'
import { terminal } from './terminal.ts'
import { withClient } from './with-client.ts'

const HELP = `
All rows of the table, as one read sees them, with the rights of the admin key. A file that is not complete is removed.
In CSV an empty cell is NULL, and "" an empty text. Cells that begin with =, +, - or @ stay as they are, and a spreadsheet
may take them for formulas.`

type Options = {
  table: string
  schema?: string
  client: string
  format: ExportFormat
  columns?: string
  out?: string
}

export const exportCommand = (): Command =>
  new Command('export')
    .description('write the rows of a table to a file or to standard output, also while the service runs')
    .requiredOption('--table <table>', 'the table, optionally as schema.table')
    .option('--schema <schema>', 'its schema (default: public)')
    .option('--client <client>', 'the client', 'default')
    .addOption(new Option('--format <format>', 'form of the rows').choices(['csv', 'jsonl']).default('csv'))
    .option('--columns <columns>', 'columns, separated by commas (default: all)')
    .option('--out <file>', 'file to write; it is replaced when it exists (default: standard output)')
    .addHelpText('after', HELP)
    .action(async (options: Options, command: Command) => {
      await withClient(command, options.client, async (kernel, clients) => {
        const signal = interrupted()
        const presence = { hasLeft: () => signal.aborted, signal: () => signal }
        const operator = createOperator(kernel, clients, presence)
        const body = bodyOf(options)
        try {
          const caller = await operator.on(options.client)
          const progress = await showProgress(await estimateRows(kernel, caller, body))
          const rows = counted(exportRows(kernel, caller, body, options.format), progress.advanceTo)
          await (options.out === undefined ? print(rows) : write(rows, options.out, signal)).finally(
            progress.end,
          )
        } finally {
          operator.release()
        }
      })
    })

const bodyOf = ({ table, schema, columns }: Options) => ({
  table_name: table,
  ...(schema !== undefined && { schema_name: schema }),
  ...(columns !== undefined && { columns }),
})

const LINE = 0x0a

/** Lines are about rows: a text can have some of its own. */
async function* counted(
  chunks: AsyncIterable<Buffer>,
  advanceTo: (rows: number) => void,
): AsyncGenerator<Buffer> {
  let lines = 0
  for await (const chunk of chunks) {
    yield chunk
    for (let at = chunk.indexOf(LINE); at >= 0; at = chunk.indexOf(LINE, at + 1)) lines++
    advanceTo(lines)
  }
}

async function print(chunks: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of chunks) await terminal.pass(chunk)
}

/** Under another name until it is complete. Only its owner may read it. */
async function write(chunks: AsyncIterable<Buffer>, file: string, signal: AbortSignal): Promise<void> {
  const part = `${file}.part`
  try {
    await pipeline(chunks, createWriteStream(part, { mode: 0o600 }), { signal })
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw signal.aborted ? new Error('Interrupted: no file was written.') : error
  }
}
