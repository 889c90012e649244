import { readFile, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { createOperator } from '#gateway/caller/operator-caller.ts'
import { generateTypes, SHAPES, type TypesRequest } from '#gateway/schema/types/types.ts'
import { interrupted } from './interrupted.ts'
import { replaceFile } from './replace-file.ts'
import { isBug, sentenceOf, terminal } from './terminal.ts'
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
        const request = { shape, numbers, withFunctions: true }
        const generate = async () => generateTypes((await operator.on(client)).backend, request)
        try {
          if (out === undefined) return terminal.sayRaw((await generate()).trimEnd())
          await write(out, await generate())
          if (watch === true) await repeat(signal, async () => write(out, await generate()))
        } finally {
          operator.release()
        }
      })
    })

async function write(file: string, text: string): Promise<void> {
  // Devices may have no end.
  const known = await stat(file).catch(() => undefined)
  if (known?.isFile() && (await readFile(file, 'utf8')) === text) return
  await replaceFile(file, text)
  terminal.say(`${file} written.`)
}

/** Milliseconds. The driver reads a catalogue of this age again. */
const INTERVAL = 1_000

/** Until the signal. A database that does not answer, or a file that cannot be written, is told once, and tried again. */
async function repeat(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  let told: string | undefined
  while (await passed(INTERVAL, signal)) {
    try {
      await work()
      told = undefined
    } catch (error) {
      if (isBug(error)) throw error
      if (signal.aborted) return
      const reason = sentenceOf(error).replace(/\.$/, '')
      if (reason !== told) terminal.warn(`${reason}; trying again.`)
      told = reason
    }
  }
}

/** False: the signal came first. */
const passed = (time: number, signal: AbortSignal): Promise<boolean> =>
  setTimeout(time, true, { signal }).catch(() => false)
