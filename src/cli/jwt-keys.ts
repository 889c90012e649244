import { Command } from 'commander'
import { listJwtKeys } from '#identity/jwt/key-store.ts'
import { retireJwtKey, rotateJwtKeys } from '#identity/jwt/keys.ts'
import { printList, terminal } from './terminal.ts'
import { withKernel, withReadOnlyKernel } from './with-kernel.ts'

export function jwtKeysCommand(): Command {
  const keys = new Command('jwt-keys').description(
    'list, rotate and retire the keys that sign JSON web tokens',
  )
  keys
    .command('list')
    .description('list all keys, oldest first; those but the retired ones are published')
    .option('--json', 'as JSON')
    .action(({ json }: { json?: boolean }, command: Command) =>
      withReadOnlyKernel(command, async ({ db }) => {
        const rows = (await listJwtKeys(db)).map((key) => ({
          id: key.id,
          algorithm: key.algorithm,
          state: key.state,
          created: key.createdAt,
          signing: key.signingAt,
          previous: key.previousAt,
          retired: key.retiredAt,
        }))
        printList(
          rows,
          ['id', 'algorithm', 'state', 'created', 'signing', 'previous', 'retired'],
          json === true,
        )
      }),
    )
  keys
    .command('rotate')
    .description('let the next key sign, as soon as every verifier can know it')
    .option('--now', 'at once, although verifiers that keep the keys for a day may not know it yet')
    .action(({ now = false }: { now?: boolean }, command: Command) =>
      withKernel(command, async (kernel) => {
        await rotateJwtKeys(kernel, { atOnce: now })
        terminal.say('rotated')
      }),
    )
  keys
    .command('retire <id>')
    .description('end a key at once, for one that is known to others; the next key signs')
    .action((id: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        await retireJwtKey(kernel, id)
        terminal.say('retired')
      }),
    )
  return keys
}
