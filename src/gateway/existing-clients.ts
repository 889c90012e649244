import type { Clients } from '#databases/clients/clients.ts'
import { CUSTOM_CLIENT } from '#databases/clients/custom.ts'
import { holdClients, listKnownNames } from '#databases/clients/store.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { unknownClient } from './caller/called-client.ts'

/** Clients that cannot be removed over HTTP: they have no row. */
export type ConfiguredNames = { readonly configured: Pick<Clients['configured'], 'has'> }

/**
 * Whether there is such a client, configured or registered. Call it in the transaction that stores something for the client: the removal of
 * the client waits until that ends, and then takes the new row out of use as well.
 */
export const clientExists = async (
  { db }: Pick<Kernel, 'db'>,
  { configured }: ConfiguredNames,
  name: string,
): Promise<boolean> => configured.has(name) || (await holdClients(db, [name])).has(name)

/** The same, as a failure. */
export async function requireClient(
  kernel: Pick<Kernel, 'db'>,
  clients: ConfiguredNames,
  name: string,
): Promise<void> {
  if (!(await clientExists(kernel, clients, name))) throw unknownClient()
}

/** Throws a failure for a client that was removed, in such a transaction. Names that no client has had yet pass. */
export async function refuseRemoved(
  { db }: Pick<Kernel, 'db'>,
  { configured }: ConfiguredNames,
  names: readonly string[],
): Promise<void> {
  const registered = names.filter((name) => name !== CUSTOM_CLIENT && !configured.has(name))
  if (registered.length === 0) return
  const known = await listKnownNames(db, registered)
  const held = known.length === 0 ? new Set() : await holdClients(db, known)
  if (known.some((name) => !held.has(name))) throw unknownClient()
}
