import { Command } from 'commander'
import { createKey, existing, revokeKey, rotateKey } from '#gateway/keys/keys.ts'
import { findKey, listKeys } from '#gateway/keys/store.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { printList, terminal } from './terminal.ts'
import { withKernel, withReading } from './with-kernel.ts'

type Create = { client?: string; rights: string; expires?: string; description?: string; json?: boolean }

export function keysCommand(): Command {
  const keys = new Command('keys').description('issue and revoke API keys of the gateway')
  keys
    .command('create <name>')
    .description('issue a key and show it, this once')
    .option('--client <client>', 'bind it to this client; management rights need that')
    .requiredOption('--rights <rights>', 'comma-separated, for example "users.read,orders.*"')
    .option('--expires <date>', 'ISO 8601; never, if absent')
    .option('--description <text>')
    .option('--json', 'as JSON')
    .action((name: string, options: Create, command: Command) =>
      withKernel(command, async (kernel) => {
        const { api_key, record } = await createKey(kernel, {
          name,
          client_name: options.client ?? null,
          rights: options.rights.split(',').map((right) => right.trim()),
          expires_at: options.expires ?? null,
          description: options.description ?? null,
        })
        terminal.say(options.json === true ? JSON.stringify({ api_key, id: record.id }) : api_key)
      }),
    )
  keys
    .command('list')
    .description('every key, without its secret')
    .option('--client <client>', 'only keys bound to this client')
    .option('--json', 'as JSON')
    .action(({ client, json }: { client?: string; json?: boolean }, command: Command) =>
      withReading(command, async ({ db }) => {
        const page = { limit: 10_000, offset: 0, ...(client === undefined ? {} : { clientName: client }) }
        const rows = (await listKeys(db, page)).map((key) => ({
          id: key.id,
          key: `svc_${key.publicId}…`,
          name: key.name,
          client: key.clientName,
          rights: key.rights.join(','),
          active: key.isActive,
          expires: key.expiresAt,
        }))
        printList(rows, ['id', 'key', 'name', 'client', 'rights', 'active', 'expires'], json === true)
      }),
    )
  keys
    .command('revoke <key>')
    .description('end a key, by its id or its public part')
    .action((key: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        await revokeKey(kernel, await idOf(kernel, key))
        terminal.say('revoked')
      }),
    )
  keys
    .command('rotate <key>')
    .description('give a key a new secret and show it, this once')
    .option('--grace <seconds>', 'how long the old secret still works', '0')
    .action((key: string, { grace }: { grace: string }, command: Command) =>
      withKernel(command, async (kernel) => {
        const { api_key } = await rotateKey(kernel, await idOf(kernel, key), Number.parseInt(grace, 10) || 0)
        terminal.say(api_key)
      }),
    )
  return keys
}

/** A key is named by its id, or by the part that stands in the open: `svc_0123456789abcdef`. */
async function idOf(kernel: Kernel, key: string): Promise<string> {
  const [, publicId] = /^(?:svc_)?([0-9a-f]{16})\b/.exec(key) ?? []
  const found = publicId === undefined ? undefined : await findKey(kernel.db, 'publicId', publicId)
  return found?.id ?? (await existing(kernel, key)).id
}
