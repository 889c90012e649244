import type { Clients } from '#databases/clients/clients.ts'
import type { RegisteredClient } from '#databases/clients/registered.ts'
import {
  CLIENT_NAME_KEY,
  type ClientRow,
  deleteClient,
  insertClient,
  listKnownNames,
  lockClient,
  lockClientRow,
  updateClient,
} from '#databases/clients/store.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell, tellChange } from '#identity/tell.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import type { Recorder } from '#kernel/audit/record-act.ts'
import { EVERY_CLIENT } from '#kernel/config/sections/auth-admin.ts'
import { clientNameForm } from '#kernel/config/sections/database.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { cancelJobsOf } from '../backups/jobs/jobs.ts'
import { expectEveryRight } from '../caller/expected-rights.ts'
import { fail } from '../errors.ts'
import { forgetClient } from '../keys/config.ts'
import { isNamedByKeys, retireKeys } from '../keys/keys.ts'
import { storingMetadata } from '../metadata.ts'
import { closeRoutes, isNamedByRoutes } from '../public-routes/public-routes.ts'
import { isNamedByWebhooks, retireWebhooks } from '../webhooks/webhooks.ts'
import { type AddressFacts, changedAddress, inspect, newAddress } from './addresses.ts'

type ClientFacts = AddressFacts & {
  readonly description?: string | null
  readonly is_active?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}
type NewClient = ClientFacts & { readonly client_name: string }

/** `reachable` is whether the database responded. The client is registered either way. */
type Registered = { readonly row: ClientRow; readonly reachable: boolean }

/** Registers a client. When it resolves, every process knows the client. */
export async function registerClient(
  kernel: Kernel,
  clients: Clients,
  asked: NewClient,
): Promise<Registered> {
  const { client_name: name } = asked
  if (clientNameForm.parse(name) === undefined)
    throw fail('invalid_client_name', { hint: `A client name is ${clientNameForm.allowed}` })
  refuseConfigured(kernel, clients, name)
  if ((await clients.registered()).has(name)) throw fail('client_exists')
  // Before the address is read and tried, which tells about variables and databases.
  await expectToRegister(kernel, name, asked)
  const id = uuidv7(kernel.now(), kernel.random)
  const address = newAddress(kernel, id, asked)
  const reachable = await inspect(kernel, clients, name, address)
  const now = kernel.now()
  const row = await insertNew(kernel, asked, {
    clientName: name,
    description: asked.description ?? null,
    ...address,
    isActive: asked.is_active ?? true,
    metadata: JSON.stringify(asked.metadata ?? {}),
    lastSeenAt: reachable ? now : null,
    createdAt: now,
    updatedAt: now,
  })
  return { row, reachable }
}

/** Changes a client. When it resolves, all processes use the new settings; running requests finish with the previous ones. */
export async function changeClient(
  kernel: Kernel,
  clients: Clients,
  name: string,
  change: ClientFacts,
): Promise<Registered> {
  const { row: former } = await existing(kernel, clients, name)
  await expectToChange(kernel, name, change)
  const address = changedAddress(kernel, former, change)
  const reachable = address === undefined || (await inspect(kernel, clients, name, address))
  const row = await changeRow(kernel, name, change, {
    ...(change.description === undefined ? {} : { description: change.description }),
    ...(change.is_active === undefined ? {} : { isActive: change.is_active }),
    ...(change.metadata === undefined ? {} : { metadata: JSON.stringify(change.metadata) }),
    ...address,
    ...(address !== undefined && reachable ? { lastSeenAt: kernel.now() } : {}),
  })
  return { row, reachable }
}

/** Freezes or unfreezes a client. When it resolves, no process starts a write on a frozen client; running writes finish. */
export async function freezeClient(
  kernel: Kernel,
  clients: Clients,
  name: string,
  isFrozen: boolean,
): Promise<ClientRow> {
  await existing(kernel, clients, name)
  return changeRow(kernel, name, {}, { isFrozen })
}

/**
 * Deletes a client. When it resolves, no process uses it. Its name can be reused; its keys, settings, public routes, webhooks and waiting
 * backups do not apply to a new client of that name.
 */
export async function removeClient(kernel: Kernel, clients: Clients, name: string): Promise<void> {
  refuseConfigured(kernel, clients, name)
  await actAsOperator(kernel, async (kernel) => {
    if (!(await retireClient(kernel, name))) throw fail('client_not_found')
  })
}

/** Deletes the row of a client and takes out of use all that names it. Call it in a transaction. False if there is no such client. */
export async function retireClient(kernel: Recorder, name: string): Promise<boolean> {
  if (!(await lockClient(kernel.db, name))) return false
  await deleteClient(kernel.db, name, kernel.now())
  await forgetClient(kernel, name)
  await retireKeys(kernel, name)
  await closeRoutes(kernel, name)
  await retireWebhooks(kernel, name)
  await cancelJobsOf(kernel, name)
  await tell(kernel, 'client.removed', { clientName: name })
  return true
}

async function existing(kernel: Kernel, clients: Clients, name: string): Promise<RegisteredClient> {
  refuseConfigured(kernel, clients, name)
  const found = (await clients.registered()).get(name)
  if (found === undefined) throw fail('client_not_found')
  return found
}

/** The logging client's name is reserved, even if there is no such client. */
function refuseConfigured({ config }: Kernel, clients: Clients, name: string): void {
  if (clients.configured.has(name) || name === config.gateway.logging_client) throw fail('client_configured')
}

async function insertNew(
  kernel: Kernel,
  facts: AddressFacts,
  row: Parameters<typeof insertClient>[1],
): Promise<ClientRow> {
  try {
    return await storingMetadata(() =>
      actAsOperator(kernel, async (kernel) => {
        await expectToRegister(kernel, row.clientName, facts)
        const inserted = await insertClient(kernel.db, row)
        await tell(kernel, 'client.registered', clientAct(inserted))
        return inserted
      }),
    )
  } catch (error) {
    if (isConflict(error, CLIENT_NAME_KEY)) throw fail('client_exists')
    throw error
  }
}

async function changeRow(
  kernel: Kernel,
  name: string,
  facts: AddressFacts,
  change: Parameters<typeof updateClient>[2],
): Promise<ClientRow> {
  return actAsOperator(kernel, async (kernel) => {
    await expectToChange(kernel, name, facts)
    const before = await lockClientRow(kernel.db, name)
    const row = await storingMetadata(() =>
      updateClient(kernel.db, name, { ...change, updatedAt: kernel.now() }),
    )
    if (before === undefined || row === undefined) throw fail('client_not_found')
    const fields = changedFields<object>(before, row, change)
    await tellChange(kernel, 'client.updated', fields, { ...clientAct(row), details: { fields } })
    return row
  })
}

async function expectToRegister(kernel: Kernel, name: string, facts: AddressFacts): Promise<void> {
  await expectToLead(kernel, facts)
  await expectToFollow(kernel, name)
}

async function expectToChange(kernel: Kernel, name: string, facts: AddressFacts): Promise<void> {
  if (hasAddress(facts)) await expectEveryRight(kernel, name)
  await expectToLead(kernel, facts)
}

const hasAddress = ({ driver, url, url_env_var, direct_url, direct_url_env_var }: AddressFacts): boolean =>
  [driver, url, url_env_var, direct_url, direct_url_env_var].some((given) => given !== undefined)

/** A variable may hold the address of any other client. */
async function expectToLead(kernel: Kernel, facts: AddressFacts): Promise<void> {
  if (facts.url_env_var != null || facts.direct_url_env_var != null)
    await expectEveryRight(kernel, EVERY_CLIENT)
}

/** Callers may still name a client of this name that was removed, also from the configuration, which leaves what it has named. */
async function expectToFollow(kernel: Kernel, name: string): Promise<void> {
  if (await isNamed(kernel, name)) await expectEveryRight(kernel, name)
}

const isNamed = async (kernel: Kernel, name: string): Promise<boolean> =>
  (await listKnownNames(kernel.db, [name])).length > 0 ||
  (await isNamedByKeys(kernel, name)) ||
  (await isNamedByRoutes(kernel, name)) ||
  (await isNamedByWebhooks(kernel, name))

const clientAct = ({ id, clientName }: ClientRow) => ({ targetId: id, clientName })
