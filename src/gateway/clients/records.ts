import { sealedUrls } from '#databases/clients/addresses.ts'
import type { Clients } from '#databases/clients/clients.ts'
import type { ConfiguredClient } from '#databases/clients/configured.ts'
import { type ClientRow, listClients } from '#databases/clients/store.ts'
import { maskedUrl } from '#kernel/config/show.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Configured and registered clients by name, without registered clients that are hidden by a configured one. */
export async function listRecords(kernel: Kernel, { configured }: Clients) {
  const rows = await listClients(kernel.db)
  const visible = rows.filter(({ clientName }) => !configured.has(clientName))
  return [
    ...[...configured.values()].map(configuredRecord),
    ...visible.map((row) => recordOf(kernel, row)),
  ].sort((left, right) => (left.client_name < right.client_name ? -1 : 1))
}

export const recordOf = ({ secrets }: Pick<Kernel, 'secrets'>, row: ClientRow) => ({
  id: row.id,
  client_name: row.clientName,
  driver: row.driver,
  description: row.description,
  ...shownUrls(secrets, row),
  url_env_var: row.urlEnvVar,
  direct_url_env_var: row.directUrlEnvVar,
  source: 'database' as const,
  is_active: row.isActive,
  is_frozen: row.isFrozen,
  metadata: row.metadata as Record<string, unknown>, // ensured by the route's schema
  last_seen_at: row.lastSeenAt,
  created_at: row.createdAt,
  updated_at: row.updatedAt,
})

function shownUrls(secrets: Kernel['secrets'], row: ClientRow) {
  const opened = sealedUrls(secrets, row)
  return {
    url: row.sealedUrl === null ? null : maskedUrl(opened.url ?? ''),
    direct_url: row.sealedDirectUrl === null ? null : maskedUrl(opened.direct_url ?? ''),
  }
}

type RecordedClient = Omit<ReturnType<typeof recordOf>, 'id' | 'source' | 'created_at' | 'updated_at'> & {
  readonly id: string | null
  readonly source: 'config' | 'database'
  readonly created_at: Date | null
  readonly updated_at: Date | null
}

/** It is not stored, so it has no id and no dates. */
const configuredRecord = (client: ConfiguredClient): RecordedClient => ({
  id: null,
  client_name: client.name,
  driver: client.driver.name,
  description: client.description,
  url: client.maskedUrl,
  direct_url: client.maskedDirectUrl,
  url_env_var: null,
  direct_url_env_var: null,
  source: 'config',
  is_active: true,
  is_frozen: false,
  metadata: {},
  last_seen_at: null,
  created_at: null,
  updated_at: null,
})

/** Connections of this process. A client without a driver in this process has none. */
export function listRuntime(clients: Clients, records: readonly RecordedClient[]) {
  const drivers = new Map(clients.opened().map(({ name, driver }) => [name, driver]))
  return records.map(({ client_name, driver, source, is_active, is_frozen }) => {
    const { total = 0, idle = 0, waiting = 0, circuit = 'closed' } = drivers.get(client_name)?.stats() ?? {}
    return { client_name, driver, source, is_active, is_frozen, pool: { total, idle, waiting }, circuit }
  })
}
