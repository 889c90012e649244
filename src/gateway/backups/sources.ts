import { openAddress } from '#databases/clients/addresses.ts'
import type { Client, Clients } from '#databases/clients/clients.ts'
import { unsupported } from '#databases/failures.ts'
import { takes } from '#kernel/config/addresses.ts'
import { ownSession } from '#kernel/db/session-settings.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { unknownClient } from '../caller/called-client.ts'
import { findProgram, type Program, type ProgramName } from './dump/programs.ts'

/** The databases of the service with the rights that a backup needs. */
export type BackupSources = {
  readonly clients: Clients
  /** URLs of the built-in clients. */
  readonly builtIn: Readonly<Record<string, string>>
  /** The role that owns the log tables. */
  readonly loggingOwner: string | undefined
  readonly embedded: EmbeddedSource | undefined
}

/** The embedded server, as its superuser. */
export type EmbeddedSource = { readonly url: string; readonly password: string }

/** How a client is backed up: by a dump of its database, or by an archive of the whole embedded server. */
export type Source =
  | {
      readonly format: 'dump'
      readonly client: Client
      /** Overrides settings that callers may have given to role and database. */
      readonly url: string
      readonly major: number
    }
  | { readonly format: 'archive'; readonly embedded: EmbeddedSource }

/** Throws if there is no such client, or none that can be backed up, or if its database does not answer. */
export async function sourceOf(kernel: Kernel, sources: BackupSources, name: string): Promise<Source> {
  const client = await sources.clients.find(name)
  if (client === undefined) throw unknownClient()
  if (!takes(client.driver.name, 'backup')) throw unsupported(client.driver.name, 'backups')
  const { embedded } = sources
  if (embedded !== undefined && client.source === 'config' && kernel.config.clients[name]?.url === undefined)
    return { format: 'archive', embedded }
  const major = await majorOf(sources, client)
  const url = await urlOfClient(kernel, sources, client)
  if (url === undefined) throw unknownClient()
  return { format: 'dump', client, url: ownSession(url, major), major }
}

/** The version of the client's server. The client may be removed meanwhile, which would close its driver. */
async function majorOf({ clients }: BackupSources, client: Client): Promise<number> {
  const release = clients.retain(client)
  let answered = false
  try {
    await client.driver.requireSession?.()
    const version = await client.driver.probe()
    answered = true
    return Number.parseInt(version, 10)
  } finally {
    release(answered)
  }
}

/** The direct URL, else the URL: a configured one, then that of a built-in client, then that of a registered one. */
async function urlOfClient(
  kernel: Kernel,
  { clients, builtIn, loggingOwner }: BackupSources,
  { name, source }: Client,
): Promise<string | undefined> {
  if (source === 'config') {
    const { direct_url, url } = kernel.config.clients[name] ?? {}
    const { logging_client } = kernel.config.gateway
    return direct_url ?? url ?? (name === logging_client ? loggingOwner : builtIn[name])
  }
  const found = (await clients.registered()).get(name)
  const address = found === undefined ? 'url' : openAddress(kernel, clients.environment, found.row)
  return typeof address === 'string' ? undefined : (address.direct_url ?? address.url)
}

/** Throws 503 if it is missing, or too old for this server. */
export const programFor = (
  { config }: Kernel,
  { clients }: BackupSources,
  name: ProgramName,
  major: number,
): Promise<Program> =>
  findProgram(name, major, { folder: config.backups.programs, path: clients.environment('PATH') })
