import { CUSTOM_CLIENT } from '#databases/clients/custom.ts'
import { listClients } from '#databases/clients/store.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { ServiceDatabases } from '#startup/open-databases.ts'

/** Clients of the configuration, and those that are built in. */
export function configuredNames(
  { config }: Pick<Kernel, 'config'>,
  { builtIn, logging }: Pick<ServiceDatabases, 'builtIn' | 'logging'>,
): ReadonlySet<string> {
  const logs = logging === undefined ? [] : [config.gateway.logging_client]
  return new Set([...Object.keys(config.clients), ...Object.keys(builtIn), ...logs])
}

/** With the clients that were registered over HTTP. */
export async function clientNames(
  { db }: Pick<Kernel, 'db'>,
  configured: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  return new Set([...configured, ...(await listClients(db)).map(({ clientName }) => clientName)])
}

/** Throws if the client does not exist. The error names those that do. */
export async function expectClient(
  kernel: Kernel,
  configured: ReadonlySet<string>,
  client: string,
): Promise<void> {
  const names = await clientNames(kernel, configured)
  if (names.has(client) || client === CUSTOM_CLIENT) return
  const existing =
    names.size === 0 ? 'No clients exist yet.' : `Existing clients: ${[...names].sort().join(', ')}.`
  throw new Error(`There is no client ${client}. ${existing}`)
}
