import { Command } from 'commander'
import { CUSTOM_CLIENT } from '#databases/clients/custom.ts'
import { listClients } from '#databases/clients/store.ts'
import { createKey, revokeKey, rotateKey } from '#gateway/keys/keys.ts'
import { FIXED_RIGHTS, grantsFixed, isRight } from '#gateway/keys/rights.ts'
import { findKey, findKeysNamed, listKeys } from '#gateway/keys/store.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Databases } from '../control.ts'
import { configOf } from './context.ts'
import { printList, terminal } from './terminal.ts'
import { withKernel, withReading } from './with-kernel.ts'

type Create = {
  client?: string
  rights: string
  browser?: boolean
  expires?: string
  description?: string
  json?: boolean
}

export function keysCommand(): Command {
  const keys = new Command('keys').description('issue and revoke API keys of the gateway')
  keys
    .command('create <name>')
    .description('issue a key and show it, this once')
    .option('--client <client>', 'bind it to this client; management rights need that')
    .requiredOption('--rights <rights>', 'comma-separated, for example "users.read,orders.*"')
    .option('--browser', 'for pages, which show it to everybody: only rows, and only where policies decide')
    .option('--expires <date>', 'ISO 8601; never, if absent')
    .option('--description <text>')
    .option('--json', 'as JSON')
    .addHelpText('after', `\nRights:\n${RIGHTS}`)
    .action((name: string, options: Create, command: Command) => {
      const rights = options.rights.split(',').map((right) => right.trim())
      expectRights(rights, options.client)
      if (options.browser === true) expectForPages(configOf(command), rights, options.client)
      return withKernel(command, async (kernel, databases) => {
        await expectClient(kernel, databases, options.client)
        const { api_key, record } = await createKey(kernel, {
          name,
          client_name: options.client ?? null,
          rights,
          expires_at: options.expires ?? null,
          description: options.description ?? null,
        })
        terminal.say(options.json === true ? JSON.stringify({ api_key, id: record.id }) : api_key)
      })
    })
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
    .description('end a key, by its id, its public part or its name')
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

/** What `--rights` takes. */
const RIGHTS = [
  ...Object.entries(FIXED_RIGHTS).map(([right, says]) => `  ${right.padEnd(36)} ${says}`),
  `  ${'TABLE.read|write|delete'.padEnd(36)} One table; SCHEMA.TABLE.… outside public`,
  `  ${'TABLE.*, *.read, gateway.*, *'.padEnd(36)} Several at once`,
].join('\n')

/** A key for a client that is not there would open nothing, and nothing would say so. */
async function expectClient(
  kernel: Kernel,
  { builtIn, logging }: Databases,
  client: string | undefined,
): Promise<void> {
  if (client === undefined) return
  const { clients, gateway } = kernel.config
  const registered = (await listClients(kernel.db)).map(({ clientName }) => clientName)
  const own = logging === undefined ? [] : [gateway.logging_client]
  const names = new Set([...Object.keys(clients), ...Object.keys(builtIn), ...own, ...registered])
  if (names.has(client) || client === CUSTOM_CLIENT) return
  const there = names.size === 0 ? 'There is none yet.' : `There are: ${[...names].sort().join(', ')}.`
  throw new Error(`There is no client ${client}. ${there}`)
}

function expectRights(rights: readonly string[], client: string | undefined): void {
  const wrong = rights.filter((right) => !isRight(right))
  if (wrong.length > 0) throw new Error(`No right: ${wrong.join(', ')}. There are:\n${RIGHTS}`)
  const bound = rights.filter((right) => right.startsWith('management.'))
  if (bound.length > 0 && client === undefined)
    throw new Error(`${bound.join(', ')}: rights of management need a key for one client, --client NAME.`)
}

/** Rights that are more than rows and functions, which policies of the database decide about. */
const NOT_FOR_PAGES = (Object.keys(FIXED_RIGHTS) as (keyof typeof FIXED_RIGHTS)[]).filter(
  (right) => !/^gateway\.(read|write|delete|rpc\.execute)$/.test(right),
)

function expectForPages({ clients }: Config, rights: readonly string[], client = ''): void {
  const wrong = rights.filter((right) => NOT_FOR_PAGES.some((more) => grantsFixed([right], more, true)))
  if (wrong.length > 0)
    throw new Error(
      `--browser: everybody who opens the page would have ${wrong.join(', ')}. Name rights to tables.`,
    )
  if (clients[client]?.row_level_security.enabled !== true)
    throw new Error(
      '--browser: everybody who opens the page would have all rows. Name a --client with row_level_security.enabled: true.',
    )
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A key is named by its id, by the part that stands in the open (`svc_0123456789abcdef`), or by a name that no other has. */
async function idOf({ db }: Kernel, key: string): Promise<string> {
  const [, publicId] = /^(?:svc_)?([0-9a-f]{16})(?:[.…]|$)/.exec(key) ?? []
  const found = publicId !== undefined ? await findKey(db, 'publicId', publicId) : undefined
  const byId = UUID.test(key) ? await findKey(db, 'id', key.toLowerCase()) : undefined
  const [one, ...others] = (found ?? byId) ? [] : await findKeysNamed(db, key)
  if (others.length > 0) {
    const ids = [one, ...others].map((named) => named?.id).join(', ')
    throw new Error(`Several keys are named ${key}: say which one by its id, ${ids}.`)
  }
  const id = (found ?? byId ?? one)?.id
  if (id === undefined) throw new Error(`There is no key ${key}. See gatehouse keys list.`)
  return id
}
