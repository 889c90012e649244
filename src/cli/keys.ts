import { Command, Option } from 'commander'
import { isProtectedClient } from '#databases/clients/protection.ts'
import { createKey, revokeKey, rotateKey } from '#gateway/keys/keys.ts'
import { findKey, findKeysNamed, listKeys } from '#gateway/keys/store.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { UUID } from '#kernel/random.ts'
import { FIXED_RIGHTS, grantsFixed, isRight } from '#kernel/rights.ts'
import { configuredNames, expectClient } from './named-client.ts'
import { instant, seconds } from './option-values.ts'
import { printList, terminal } from './terminal.ts'
import { withKernel, withReadOnlyKernel } from './with-kernel.ts'
import { WrongUsage } from './wrong-usage.ts'

type Create = {
  client?: string
  rights: string
  browser?: boolean
  expires?: Date
  description?: string
  json?: boolean
}

export function keysCommand(): Command {
  const keys = new Command('keys').description('issue, list, rotate and revoke API keys of the gateway')
  keys
    .command('create <name>')
    .description('issue a key and show it once')
    .option('--client <client>', 'bind the key to this client; required for management rights')
    .requiredOption('--rights <rights>', 'comma-separated, for example "users.read,orders.*"')
    .option('--browser', 'for web pages, where the key is public: table rights only, with row-level security')
    .addOption(new Option('--expires <date>', 'ISO 8601; default: never').argParser(instant))
    .option('--description <text>')
    .option('--json', 'as JSON')
    .addHelpText('after', `\nRights:\n${RIGHTS}`)
    .action((name: string, options: Create, command: Command) => {
      const rights = options.rights.split(',').map((right) => right.trim())
      expectRights(rights, options.client)
      if (options.browser === true) expectBrowserRights(rights)
      return withKernel(command, async (kernel, databases) => {
        const configured = configuredNames(kernel, databases)
        if (options.client !== undefined) await expectClient(kernel, configured, options.client)
        if (options.browser === true) await expectPolicies(kernel, options.client)
        const { api_key, record } = await createKey(
          kernel,
          { configured },
          {
            name,
            client_name: options.client ?? null,
            rights,
            expires_at: options.expires?.toISOString() ?? null,
            description: options.description ?? null,
          },
        )
        terminal.say(options.json === true ? JSON.stringify({ api_key, id: record.id }) : api_key)
      })
    })
  keys
    .command('list')
    .description('list all keys, without their secrets')
    .option('--client <client>', 'only keys bound to this client')
    .option('--json', 'as JSON')
    .action(({ client, json }: { client?: string; json?: boolean }, command: Command) =>
      withReadOnlyKernel(command, async ({ db }) => {
        const page = { limit: 10_000, offset: 0, ...(client === undefined ? {} : { clientName: client }) }
        const rows = (await listKeys(db, page)).map((key) => ({
          id: key.id,
          key: `svc_${key.publicId}…`,
          name: key.name,
          client: key.clientName,
          rights: key.rights.join(','),
          active: key.isActive,
          expires: key.expiresAt,
          used: key.lastUsedAt,
        }))
        const columns = ['id', 'key', 'name', 'client', 'rights', 'active', 'expires', 'used']
        printList(rows, columns, json === true)
      }),
    )
  keys
    .command('revoke <key>')
    .description('revoke a key, given by id, public part or name')
    .action((key: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        await revokeKey(kernel, await idOf(kernel, key))
        terminal.say('revoked')
      }),
    )
  keys
    .command('rotate <key>')
    .description('give a key a new secret and show it once')
    .addOption(
      new Option('--grace <seconds>', 'how long the old secret keeps working').default(0).argParser(seconds),
    )
    .action((key: string, { grace }: { grace: number }, command: Command) =>
      withKernel(command, async (kernel) => {
        const { api_key } = await rotateKey(kernel, await idOf(kernel, key), grace)
        terminal.say(api_key)
      }),
    )
  return keys
}

/** Help text: the values of `--rights`. */
const RIGHTS = [
  ...Object.entries(FIXED_RIGHTS).map(([right, says]) => `  ${right.padEnd(36)} ${says}`),
  `  ${'TABLE.read|write|delete'.padEnd(36)} One table; SCHEMA.TABLE.… outside public`,
  `  ${'TABLE.*, *.read, gateway.*, *'.padEnd(36)} Several at once`,
].join('\n')

function expectRights(rights: readonly string[], client: string | undefined): void {
  const wrong = rights.filter((right) => !isRight(right))
  if (wrong.length > 0)
    throw new WrongUsage(
      `Unknown rights: ${wrong.join(', ')}. gatehouse keys create --help lists the rights.`,
    )
  const bound = rights.filter((right) => right.startsWith('management.'))
  if (bound.length > 0 && client === undefined)
    throw new WrongUsage(
      `${bound.join(', ')}: management rights need a key that is bound to a client: add --client NAME.`,
    )
}

/** Rights beyond rows and functions: row-level security does not limit these. */
const NOT_FOR_BROWSERS = (Object.keys(FIXED_RIGHTS) as (keyof typeof FIXED_RIGHTS)[]).filter(
  (right) => !/^gateway\.(read|write|delete|rpc\.execute)$/.test(right),
)

function expectBrowserRights(rights: readonly string[]): void {
  const wrong = rights.filter((right) =>
    NOT_FOR_BROWSERS.some((more) => grantsFixed([right], more, { isBound: true, hasPolicies: true })),
  )
  if (wrong.length > 0)
    throw new WrongUsage(
      `--browser: every visitor of the page would have ${wrong.join(', ')}. Grant rights to tables only.`,
    )
}

async function expectPolicies({ config, db }: Kernel, client = ''): Promise<void> {
  if (!(await isProtectedClient(config, db, client)))
    throw new WrongUsage(
      '--browser: every visitor of the page could reach all rows. Use a --client with row_level_security.enabled: true, or switch it on for default in the console.',
    )
}

/** Finds a key by its id, by its public part (`svc_0123456789abcdef`), or by its name if that is unique. */
async function idOf({ db }: Kernel, key: string): Promise<string> {
  const [, publicId] = /^(?:svc_)?([0-9a-f]{16})(?:[.…]|$)/.exec(key) ?? []
  const byPublicId = publicId !== undefined ? await findKey(db, 'publicId', publicId) : undefined
  const byId = UUID.test(key) ? await findKey(db, 'id', key.toLowerCase()) : undefined
  const named = (byPublicId ?? byId) ? [] : await findKeysNamed(db, key)
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(', ')
    throw new Error(`Several keys are named ${key}: give the id of one, ${ids}.`)
  }
  const id = (byPublicId ?? byId ?? named[0])?.id
  if (id === undefined) throw new Error(`There is no key ${key}. See gatehouse keys list.`)
  return id
}
