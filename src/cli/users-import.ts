import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { addAbortSignal } from 'node:stream'
import { Command } from 'commander'
import { emptyReport, type ImportReport, importUsers } from '#identity/import/import.ts'
import { linesOf } from '#identity/import/lines.ts'
import { type Progress, showProgress } from './progress.ts'
import { terminal } from './terminal.ts'
import { withKernel } from './with-kernel.ts'

const HELP = `
Every line is one JSON object:
  email*, name*, emailVerified, username, displayUsername, image, role, createdAt, banned, banReason, banExpires,
  id (kept when it is a UUID) and passwordHash: better-auth's salt:key, bcrypt, PBKDF2 or scrypt in PHC form, PBKDF2 as
  Django stores it, or Argon2. It is replaced by a hash of this service at the first sign-in. One that would take more
  than about a second or 256 MiB to check is refused: strangers could keep the machine busy with it.

Whose email is there already is left as they are, so a run that was interrupted is simply started again.`

type Options = { dryRun?: boolean; dropCostlyHashes?: boolean }

export function importCommand(): Command {
  return new Command('import')
    .description('add the users of a file of JSON lines')
    .argument('<file>', 'the file, or - for standard input')
    .option('--dry-run', 'only check each line, and look who is there already')
    .option(
      '--drop-costly-hashes',
      'add users whose hash takes too long to check without a password; a reset mail lets them in',
    )
    .addHelpText('after', HELP)
    .action(async (file: string, { dryRun = false, dropCostlyHashes = false }: Options, command: Command) => {
      const size = file === '-' ? undefined : (await stat(file)).size
      await withKernel(command, async (kernel) => {
        const progress = await showProgress(size)
        const began = performance.now()
        const report = emptyReport()
        const signal = interrupted()
        const importing = importUsers(kernel, linesOf(read(file, progress, signal)), {
          dryRun,
          dropCostlyHashes,
          report,
          onBadLine: (number, why) => progress.warn(`line ${number}: ${why}`),
        })
        // Also of one that failed or was interrupted: what it has added stays.
        await importing
          .catch((error: unknown) => {
            throw signal.aborted ? new Error('Interrupted; the rest is added by running it again.') : error
          })
          .finally(() => {
            progress.end()
            summarise(report, dryRun, (performance.now() - began) / 1_000)
          })
      })
    })
}

/** At the first Ctrl-C or SIGTERM; the second ends the process. */
function interrupted(): AbortSignal {
  const interruption = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interruption.abort())
  return interruption.signal
}

async function* read(file: string, { advance }: Progress, signal: AbortSignal): AsyncGenerator<Buffer> {
  const stream = file === '-' ? terminal.input : createReadStream(file, { highWaterMark: 256 * 1_024 })
  for await (const chunk of addAbortSignal(signal, stream)) {
    // Neither stream has an encoding, so both give bytes.
    const bytes = chunk as Buffer
    yield bytes
    advance(bytes.length)
  }
}

function summarise(
  { added, alreadyThere, bad, ignored }: ImportReport,
  dryRun: boolean,
  seconds: number,
): void {
  if (ignored.size > 0) terminal.warn(`left out, because they mean nothing here: ${[...ignored].join(', ')}`)
  const parts = [
    `${added} ${dryRun ? 'to add' : 'added'}`,
    `${alreadyThere} already there`,
    `${bad} bad ${bad === 1 ? 'line' : 'lines'}`,
  ]
  terminal.say(`${parts.join(', ')} in ${seconds.toFixed(1)} s`)
  if (bad > 0) process.exitCode = 1
}
