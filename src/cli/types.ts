import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { createOperator } from '#gateway/caller/operator-caller.ts'
import { generateTypes, SHAPES, type TypesRequest } from '#gateway/schema/types/types.ts'
import { Failure } from '#kernel/errors.ts'
import { interrupted } from './interrupted.ts'
import { terminal } from './terminal.ts'
import { withClient } from './with-client.ts'
import { WrongUsage } from './wrong-usage.ts'

const HELP = `
The file is replaced only when its text changes. --watch looks at the structure each second, until Ctrl-C.`

type Options = {
  client: string
  shape: TypesRequest['shape']
  numbers?: TypesRequest['numbers']
  out?: string
  watch?: boolean
}

export const typesCommand = (): Command =>
  new Command('types')
    .description("write TypeScript types of a client's tables, also while the service runs")
    .option('--client <client>', 'the client', 'default')
    .addOption(new Option('--shape <shape>', 'form of the types').choices(SHAPES).default('default'))
    .addOption(
      new Option(
        '--numbers <numbers>',
        'exact: also bigint and text, for a reader that keeps all digits',
      ).choices(['exact']),
    )
    .option('--out <file>', 'file to write (default: standard output)')
    .option('--watch', 'write the file again whenever the structure has changed')
    .addHelpText('after', HELP)
    .action(async ({ client, shape, numbers = 'number', out, watch }: Options, command: Command) => {
      if (watch === true && out === undefined) throw new WrongUsage('--watch needs --out FILE.')
      await withClient(command, client, async (kernel, clients) => {
        const signal = interrupted()
        const operator = createOperator(kernel, clients, {
          hasLeft: () => signal.aborted,
          signal: () => signal,
        })
        const generate = async () => generateTypes((await operator.on(client)).backend, { shape, numbers })
        try {
          if (out === undefined) return terminal.sayRaw((await generate()).trimEnd())
          await write(out, await generate())
          if (watch === true) await repeat(signal, async () => write(out, await generate()))
        } finally {
          operator.release()
        }
      })
    })

/** Whole or not at all: a compiler or an editor may be reading the file. */
async function write(file: string, text: string): Promise<void> {
  if ((await textOf(file)) === text) return
  const part = `${file}.part`
  try {
    await writeFile(part, text)
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
  terminal.say(`${file} written.`)
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Milliseconds. The driver reads a catalogue of this age again. */
const INTERVAL = 1_000

/** Until the signal. A database that does not answer is told once, and asked again. */
async function repeat(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  let told: string | undefined
  while (await passed(INTERVAL, signal)) {
    try {
      await work()
      told = undefined
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      if (error.message !== told) terminal.warn(`${error.message}; trying again.`)
      told = error.message
    }
  }
}

/** False: the signal came first. */
const passed = (time: number, signal: AbortSignal): Promise<boolean> =>
  setTimeout(time, true, { signal }).catch(() => false)
