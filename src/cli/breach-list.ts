import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { type BuiltList, buildBreachList } from '#auth/password/build-breach-list.ts'
import { interrupted } from './interrupted.ts'
import { readChunks, showProgress } from './progress.ts'
import { terminal } from './terminal.ts'

const HELP = `
Every line is the SHA-1 of a password in hexadecimal digits, alone or as SHA1:COUNT, the form of Have I Been Pwned's
download; in any order. The file is for the setting auth.email_password.breach_check_file. A running service uses it as
soon as it is complete. The build needs 12 bytes of disk for each line beside the file.`

export function breachListCommand(): Command {
  const list = new Command('breach-list').description('make the list of breached passwords')
  list
    .command('build <file>')
    .description('make the list from a file of SHA-1 hashes, or - for standard input')
    .requiredOption('--out <file>', 'the list; it is replaced when it exists')
    .addHelpText('after', HELP)
    .action(async (file: string, { out }: { out: string }) => {
      const signal = interrupted()
      const began = performance.now()
      const progress = await showProgress(file === '-' ? undefined : (await stat(file)).size)
      const building = buildBreachList(readChunks(file, progress, signal), { out, signal })
      const built = await building
        .catch((error: unknown) => {
          throw signal.aborted ? new Error(`Interrupted; ${out} is as it was.`) : error
        })
        .finally(progress.end)
      report(built, out, (performance.now() - began) / 1_000)
    })
  return list
}

/** Hashes that the list can tell apart: it keeps 48 bits of each. */
const DISTINCT = 2 ** 48

function report({ hashes, bytes }: BuiltList, out: string, seconds: number): void {
  const size = (bytes / 1_048_576).toFixed(1)
  terminal.say(`${out}: ${hashes} passwords, ${size} MiB in ${seconds.toFixed(1)} s`)
  if (hashes > 0)
    terminal.say(
      `It also has one in ${Math.floor(DISTINCT / hashes)} of the passwords that were in no breach.`,
    )
}
