import type { Clients } from '#databases/clients/clients.ts'
import { CUSTOM_CLIENT } from '#databases/clients/custom.ts'
import { actAsOperator } from '#identity/act.ts'
import { tellChange } from '#identity/tell.ts'
import { createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { expectRights } from '../caller/expected-rights.ts'
import { fail } from '../errors.ts'
import { clientExists } from '../existing-clients.ts'
import { deleteDecision, type KeyDecision, listDecisions, upsertDecision } from './store.ts'

/** Key of the default setting. No client can have this name. */
const EVERY = '*'

/**
 * Whether data operations need a key. Precedence: run-time setting of the client, its configuration, run-time default,
 * `gateway.enforce_api_keys`. The logging client always needs one.
 */
export type Enforcement = {
  /** Throws 503 if the setting cannot be read: without the store, access is denied. */
  needsKey(clientName: string | undefined): Promise<boolean>
}

export function keyEnforcement(kernel: Kernel): Enforcement {
  // One cache entry for the whole table, which has one row per setting.
  const cache = createCoherentCache<Decisions>({
    coherence: kernel.coherence,
    max: 1,
    load: async () => decisionsOf(await listDecisions(kernel.db)),
    tags: () => ['api_key_config'],
  })
  return {
    async needsKey(clientName) {
      try {
        const decisions = cache.peek(EVERY) ?? (await cache.get(EVERY)) ?? new Map()
        return decided(kernel, decisions, clientName ?? EVERY).enforceApiKeys
      } catch (cause) {
        throw fail('api_key_validation_unavailable', { cause })
      }
    },
  }
}

type Decisions = ReadonlyMap<string, boolean>
type Source = 'runtime_client' | 'configuration_client' | 'runtime' | 'configuration'

const decisionsOf = (rows: readonly KeyDecision[]): Decisions =>
  new Map(rows.map(({ clientName, enforceApiKeys }) => [clientName, enforceApiKeys]))

/** Implements the precedence of the settings. */
function decided(
  { config }: Kernel,
  decisions: Decisions,
  name: string,
): { readonly enforceApiKeys: boolean; readonly source: Source } {
  const { enforce_api_keys, logging_client } = config.gateway
  const atRunTime = decisions.get(name)
  const configured = config.clients[name]?.enforce_api_keys
  if (name === logging_client) return { enforceApiKeys: true, source: 'configuration_client' }
  if (name !== EVERY && atRunTime !== undefined)
    return { enforceApiKeys: atRunTime, source: 'runtime_client' }
  if (configured !== undefined) return { enforceApiKeys: configured, source: 'configuration_client' }
  const fallback = decisions.get(EVERY)
  if (fallback !== undefined) return { enforceApiKeys: fallback, source: 'runtime' }
  return { enforceApiKeys: enforce_api_keys, source: 'configuration' }
}

/** The current settings, as default and by client, with their source. */
export async function describeEnforcement(kernel: Kernel, clients: Clients) {
  const decisions = decisionsOf(await listDecisions(kernel.db))
  const names = [...(await clients.names()), ...(decisions.has(CUSTOM_CLIENT) ? [CUSTOM_CLIENT] : [])]
  return {
    ...decided(kernel, decisions, EVERY),
    clients: names.map((name) => ({ clientName: name, ...decided(kernel, decisions, name) })),
  }
}

/** Null restores the configured default. When it resolves, all processes use the new setting. */
export async function setDefault(kernel: Kernel, enforceApiKeys: boolean | null): Promise<void> {
  await decide(kernel, EVERY, enforceApiKeys)
}

export async function setClient(
  kernel: Kernel,
  clients: Clients,
  name: string,
  enforceApiKeys: boolean,
): Promise<void> {
  await actAsOperator(kernel, async (kernel) => {
    if (name !== CUSTOM_CLIENT && !(await clientExists(kernel, clients, name))) throw fail('client_not_found')
    if (name === kernel.config.gateway.logging_client)
      throw fail('client_configured', { message: 'The logging client always requires a key' })
    await decide(kernel, name, enforceApiKeys)
  })
}

export async function unsetClient(kernel: Kernel, name: string): Promise<void> {
  if (name === EVERY || !(await decide(kernel, name, null))) throw fail('api_key_client_not_found')
}

/** Of strangers, where no key is needed. */
const KEYLESS = ['gateway.read', 'gateway.write', 'gateway.delete', 'gateway.rpc.execute', 'pipelines.run']

/** Null removes the setting. False when it is so already. */
const decide = (kernel: Kernel, clientName: string, enforceApiKeys: boolean | null): Promise<boolean> =>
  actAsOperator(kernel, async (kernel) => {
    const changed =
      enforceApiKeys === null
        ? await deleteDecision(kernel.db, clientName)
        : await upsertDecision(kernel.db, { clientName, enforceApiKeys, updatedAt: kernel.now() })
    if (changed && enforceApiKeys !== true) await expectRights(kernel, clientName, KEYLESS)
    const act = { targetId: clientName, details: { enforceApiKeys } }
    await tellChange(kernel, 'enforcement.changed', changed ? ['enforceApiKeys'] : [], act)
    return changed
  })

/** Removes the setting of a deleted client, so that it does not apply to a new client of the same name. */
export const forgetClient = ({ db }: Pick<Kernel, 'db'>, name: string): Promise<boolean> =>
  deleteDecision(db, name)
