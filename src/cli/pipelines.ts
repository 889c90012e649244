import { readFile } from 'node:fs/promises'
import { Command } from 'commander'
import type { PipelineBody } from '#gateway/pipelines/definition.ts'
import { parsePipelineBody } from '#gateway/pipelines/pipelines-file.ts'
import { runByOperator } from '#gateway/pipelines/run/run-by-operator.ts'
import { type RunResult, resultJson } from '#gateway/pipelines/run/run-result.ts'
import { closestName } from '#kernel/closest-name.ts'
import type { Config } from '#kernel/config/config.ts'
import { Failure } from '#kernel/errors.ts'
import { configOf, environment, loadPipelines } from './context.ts'
import { interrupted } from './interrupted.ts'
import { showProgress } from './progress.ts'
import { runError } from './run-error.ts'
import { readInput, terminal } from './terminal.ts'
import { withClient } from './with-client.ts'

export function pipelinesCommand(): Command {
  const pipelines = new Command('pipelines').description('run pipelines and check the pipelines file')
  pipelines.addCommand(runCommand())
  pipelines
    .command('check [file]')
    .description('report every problem of the pipelines file (default: setting gateway.pipelines_file)')
    .option('--json', 'list the pipelines as JSON')
    .action((file: string | undefined, { json }: { json?: boolean }, command: Command) =>
      check(withFile(configOf(command), file), json === true),
    )
  return pipelines
}

const withFile = (config: Config, file: string | undefined): Config =>
  file === undefined ? config : { ...config, gateway: { ...config.gateway, pipelines_file: file } }

function check(config: Config, json: boolean): void {
  const { file, pipelines } = loadPipelines(config)
  if (file === undefined)
    throw new Error('There is no pipelines.yaml here: name the file, or set gateway.pipelines_file.')
  if (json) terminal.say(JSON.stringify(Object.fromEntries(pipelines), null, 2))
  else terminal.say(`${file.name} is valid: ${[...pipelines.keys()].join(', ') || 'no pipelines'}`)
}

type Options = { file?: string; client: string; dryRun?: boolean; json?: boolean }

const HELP = `
The file of --file has the members of the body of POST /pipelines, as JSON or YAML: pipeline, source, transform, sink and dry_run.
The run has the rights of the admin key. The log takes its steps when the service runs. Exit code 1: it failed, or the sink has refused rows.`

const runCommand = (): Command =>
  new Command('run')
    .description('run a pipeline of the pipelines file, or one of a file of its own, without the service')
    .argument('[name]', 'the name of the pipeline')
    .option('--file <body>', 'a file with the pipeline, or - for standard input')
    .option('--client <name>', 'client of a source or sink that names none', 'default')
    .option('--dry-run', 'read and transform the rows, but insert none')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', HELP)
    .action(async (name: string | undefined, options: Options, command: Command) => {
      if ((name === undefined) === (options.file === undefined))
        command.error(`error: ${name === undefined ? NOTHING_TO_RUN : TWO_TO_RUN}`, { exitCode: 2 })
      const config = configOf(command)
      const { pipelines } = loadPipelines(config)
      const body = name === undefined ? await readBody(config, options.file ?? '') : { pipeline: name }
      const named = body.pipeline === undefined ? undefined : pipelines.get(body.pipeline)
      if (body.pipeline !== undefined && named === undefined)
        throw new Error(unknownPipeline(body.pipeline, [...pipelines.keys()]))
      await run({ ...body, ...(options.dryRun === true && { dry_run: true }) }, named, options, command)
    })

const NOTHING_TO_RUN = 'name a pipeline of the pipelines file, or a file with --file'
const TWO_TO_RUN = 'name a pipeline, or a file with --file, not both'

async function readBody(config: Config, file: string): Promise<PipelineBody> {
  const text = file === '-' ? await readInput() : await readFile(file, 'utf8')
  return parsePipelineBody(config, { name: file === '-' ? 'standard input' : file, text }, environment())
}

function unknownPipeline(name: string, known: readonly string[]): string {
  const meant = closestName(name, known)
  if (meant !== undefined) return `There is no pipeline ${name}; did you mean ${meant}?`
  const existing = known.length === 0 ? 'no pipelines exist' : `existing pipelines: ${known.join(', ')}`
  return `There is no pipeline ${name}; ${existing}. They are in the pipelines file (gateway.pipelines_file).`
}

async function run(
  body: PipelineBody,
  named: Parameters<typeof runByOperator>[2]['named'],
  { client, json }: Options,
  command: Command,
): Promise<void> {
  await withClient(command, client, async (kernel, clients) => {
    const signal = interrupted()
    const presence = { hasLeft: () => signal.aborted, signal: () => signal }
    const began = performance.now()
    const bar = createBar()
    try {
      const result = await runByOperator(kernel, clients, {
        body,
        named,
        client,
        presence,
        onEstimate: bar.start,
      })
      bar.end()
      if (json === true) terminal.sayRaw(Buffer.concat(resultJson(result)).toString())
      else report(result, (performance.now() - began) / 1_000)
      if (result.errors.length > 0 || result.outcome !== 'completed') process.exitCode = 1
    } catch (error) {
      bar.end()
      if (!(error instanceof Failure)) throw error
      if (json === true) terminal.sayRaw(JSON.stringify(envelopeOf(error)))
      throw runError(error)
    }
  })
}

/** A progress bar that begins when the number of rows is known. */
function createBar() {
  let ended = () => {}
  return {
    async start(rows: number | undefined) {
      const progress = await showProgress(rows === 0 ? undefined : rows)
      ended = progress.end
      return ({ rowsFetched }: { readonly rowsFetched: number }) => progress.advanceTo(rowsFetched)
    },
    end: () => ended(),
  }
}

/** Refused rows that are printed; `--json` has all of them. */
const SHOWN = 10

function report(result: RunResult, seconds: number): void {
  const { dryRun, errors, errorsTruncated, outcome, rowsFetched, rowsInserted, wouldInsert } = result
  for (const { index, error, code } of errors.slice(0, SHOWN))
    terminal.warn(`row ${index}: ${error} (${code})`)
  if (errors.length > SHOWN) terminal.warn('… more with --json')
  const stored = dryRun ? `${wouldInsert} to insert` : `${rowsInserted} inserted`
  const refused = `${errors.length}${errorsTruncated ? ' or more' : ''} refused`
  terminal.say(`${rowsFetched} rows read, ${stored}, ${refused} in ${seconds.toFixed(1)} s, run ${result.id}`)
  if (outcome === 'cancelled') terminal.warn('Interrupted: the rows of complete batches are stored.')
  if (outcome === 'too_many_errors')
    terminal.warn('Stopped: the sink has refused too many rows (gateway.pipelines.max_errors).')
}

const envelopeOf = ({ code, message, hint, details = {} }: Failure) => ({
  status: 'error',
  code,
  message,
  error: hint ?? message,
  details,
})
