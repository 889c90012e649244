import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { emptyReport, type ImportReport, importUsers } from '#identity/import/import.ts'
import { linesOf } from '#kernel/lines.ts'
import { interrupted } from './interrupted.ts'
import { readChunks, showProgress } from './progress.ts'
import { terminal } from './terminal.ts'
import { withKernel } from './with-kernel.ts'

const HELP = `
Every line is one JSON object:
  email*, name*, emailVerified, username, displayUsername, image, role, createdAt, banned, banReason, banExpires,
  id (kept if it is a UUID) and passwordHash: better-auth's salt:key, bcrypt, PBKDF2 or scrypt in PHC form, PBKDF2 as
  Django stores it, or Argon2. The hash is replaced by one of this service at the first sign-in. A hash that takes more
  than about a second or 256 MiB to verify is rejected, because sign-in attempts with it could overload the machine.
  Fields of auth.user.fields are members too, also those that users may not set.

  Users whose email already exists are skipped, so you can simply rerun an interrupted import.`

type Options = { dryRun?: boolean; dropCostlyHashes?: boolean }

export function importCommand(): Command {
  return new Command('import')
    .description('import users from a file of JSON lines')
    .argument('<file>', 'the file, or - for standard input')
    .option('--dry-run', 'only check each line and whether its user already exists')
    .option(
      '--drop-costly-hashes',
      'import users with too expensive hashes without a password; they set one through a reset mail',
    )
    .addHelpText('after', HELP)
    .action(async (file: string, { dryRun = false, dropCostlyHashes = false }: Options, command: Command) => {
      const size = file === '-' ? undefined : (await stat(file)).size
      await withKernel(command, async (kernel) => {
        const progress = await showProgress(size)
        const began = performance.now()
        const report = emptyReport()
        const signal = interrupted()
        const importing = importUsers(kernel, linesOf(readChunks(file, progress, signal)), {
          dryRun,
          dropCostlyHashes,
          report,
          onBadLine: (number, why) => progress.warn(`line ${number}: ${why}`),
        })
        // Print the summary even after a failure or an interruption: users added so far are kept.
        await importing
          .catch((error: unknown) => {
            throw signal.aborted ? new Error('Interrupted; run it again to add the remaining users.') : error
          })
          .finally(() => {
            progress.end()
            summarise(report, dryRun, (performance.now() - began) / 1_000)
          })
      })
    })
}

function summarise(
  { added, alreadyThere, bad, ignored }: ImportReport,
  dryRun: boolean,
  seconds: number,
): void {
  if (ignored.size > 0) terminal.warn(`ignored unknown fields: ${[...ignored].join(', ')}`)
  const parts = [
    `${added} ${dryRun ? 'to add' : 'added'}`,
    `${alreadyThere} existing`,
    `${bad} invalid ${bad === 1 ? 'line' : 'lines'}`,
  ]
  terminal.say(`${parts.join(', ')} in ${seconds.toFixed(1)} s`)
  if (bad > 0) process.exitCode = 1
}
