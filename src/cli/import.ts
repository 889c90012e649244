import { stat } from 'node:fs/promises'
import path from 'node:path'
import { Command, Option } from 'commander'
import { createOperator } from '#gateway/caller/operator-caller.ts'
import { importRows } from '#gateway/import/import.ts'
import { aliasesIn, DELIMITERS } from '#gateway/import/import-options.ts'
import { type ImportFormat, type ImportResult, resultOf } from '#gateway/import/import-result.ts'
import { Failure } from '#kernel/errors.ts'
import { interrupted } from './interrupted.ts'
import { readChunks, showProgress } from './progress.ts'
import { runError } from './run-error.ts'
import { terminal } from './terminal.ts'
import { withClient } from './with-client.ts'

const HELP = `
The first line of CSV names its columns. An empty cell is NULL, and "" an empty text. A line of JSON lines is one object.
Rows are stored in batches, with the rights of the admin key. Bad rows are told by row and line, and all others are stored.
Exit code 1: it failed, or rows were refused.`

type Options = {
  table: string
  schema?: string
  client: string
  format?: ImportFormat
  delimiter: keyof typeof DELIMITERS
  columns?: string
  onConflict?: string
  dryRun?: boolean
  json?: boolean
}

export const importCommand = (): Command =>
  new Command('import')
    .description('store the rows of a file of CSV or JSON lines, also while the service runs')
    .argument('<file>', 'the file, or - for standard input')
    .requiredOption('--table <table>', 'the table, optionally as schema.table')
    .option('--schema <schema>', 'its schema (default: public)')
    .option('--client <client>', 'the client', 'default')
    .addOption(
      new Option('--format <format>', 'default: by the ending of the file').choices(['csv', 'jsonl']),
    )
    .addOption(
      new Option('--delimiter <name>', 'between the cells of CSV')
        .choices(Object.keys(DELIMITERS))
        .default('comma'),
    )
    .option(
      '--columns <json>',
      'name in the file to column, or to null: {"Book title": "title", "notes": null}',
    )
    .option('--on-conflict <columns>', 'skip rows that exist already, by the columns of a unique constraint')
    .option('--dry-run', 'check each row in the database, and store none')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(async (file: string, options: Options, command: Command) => {
      const format = options.format ?? formatOf(file)
      if (format === undefined)
        command.error('error: name the format of the file with --format csv or --format jsonl', {
          exitCode: 2,
        })
      const size = file === '-' ? undefined : (await stat(file)).size
      await withClient(command, options.client, async (kernel, clients) => {
        const signal = interrupted()
        const operator = createOperator(kernel, clients, {
          hasLeft: () => signal.aborted,
          signal: () => signal,
        })
        const progress = await showProgress(size)
        const began = performance.now()
        try {
          const result = await importRows(kernel, {
            format,
            delimiter: DELIMITERS[options.delimiter],
            target: targetOf(options),
            aliases: aliasesIn(options.columns),
            dryRun: options.dryRun === true,
            chunks: readChunks(file, progress, signal),
            caller: () => operator.on(options.client),
            end: () => (signal.aborted ? new Error(INTERRUPTED) : undefined),
          })
          progress.end()
          report(result, options.json === true, (performance.now() - began) / 1_000)
        } catch (error) {
          progress.end()
          throw signal.aborted ? new Error(INTERRUPTED) : error instanceof Failure ? runError(error) : error
        } finally {
          operator.release()
        }
      })
    })

const INTERRUPTED = 'Interrupted: the rows of complete batches are stored.'

const FORMATS: Readonly<Record<string, ImportFormat>> = {
  '.csv': 'csv',
  '.tsv': 'csv',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
}
const formatOf = (file: string): ImportFormat | undefined => FORMATS[path.extname(file).toLowerCase()]

const targetOf = ({ table, schema, onConflict }: Options) => ({
  table_name: table,
  ...(schema !== undefined && { schema_name: schema }),
  ...(onConflict !== undefined && { on_conflict: onConflict }),
})

/** Bad rows that are printed; `--json` has more. */
const SHOWN = 10

function report(result: ImportResult, json: boolean, seconds: number): void {
  const { rowsRead, rowsInserted, rowsSkipped, rowsRefused, errors, outcome, dryRun } = result
  if (rowsRefused > 0) process.exitCode = 1
  if (json) {
    terminal.sayRaw(JSON.stringify(resultOf(result), null, 2))
    return
  }
  for (const { row, line, error, code } of errors.slice(0, SHOWN))
    terminal.warn(`row ${row}, line ${line}: ${error} (${code})`)
  if (rowsRefused > SHOWN) terminal.warn('… more with --json')
  const stored = dryRun ? `${rowsInserted} to insert` : `${rowsInserted} inserted`
  const skipped = rowsSkipped === 0 ? '' : `, ${rowsSkipped} skipped`
  terminal.say(
    `${rowsRead} rows read, ${stored}${skipped}, ${rowsRefused} refused in ${seconds.toFixed(1)} s`,
  )
  if (outcome === 'too_many_errors')
    terminal.warn('Stopped: too many rows were refused (gateway.pipelines.max_errors).')
}
