import { finished } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Client, Clients } from '#databases/clients/clients.ts'
import type { Driver, Persona, Presence } from '#databases/drivers/driver.ts'
import type { Rights, TableRight } from '#databases/plan/rights.ts'
import type { Sessions } from '#identity/sessions.ts'
import { type CoherentCache, createCoherentCache } from '#kernel/db/coherent-cache.ts'
import type { Access } from '#kernel/http/access.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { calledClient, clientHeader, unknownClient } from './called-client.ts'
import { createPersonaLookup } from './caller-role.ts'
import { fail, REFUSED } from './errors.ts'
import type { Grant } from './grant.ts'
import { adminKeyOf } from './keys/admin-key.ts'
import { keyEnforcement } from './keys/config.ts'
import { type ApiKey, keyNamed } from './keys/keys.ts'
import { presentedKey, provenKey } from './keys/presented-key.ts'
import { type FIXED_RIGHTS, grantsFixed, grantsTable, nameOfRight } from './keys/rights.ts'
import { KEY_SECURITY, type OperatorAccess, operatorAccess } from './operator-access.ts'
import { presenceOf } from './presence.ts'

/** Who is calling the gateway, and on which client. */
export type GatewayCaller = {
  /** Without its driver, which would reach the database as the client's own role. */
  readonly client: Omit<Client, 'driver'>
  /** Reaches the database as this caller. */
  readonly driver: Driver
  /** Where policies of the database hold for the request. */
  readonly persona: Persona | undefined
  readonly grant: Grant
  readonly requestId: string
  /** Whether they still wait for the answer: every statement that runs for them is told. */
  readonly presence: Presence
}

declare module 'fastify' {
  interface FastifyRequest {
    gateway: GatewayCaller | undefined
  }
}

export type GatewayAccess = OperatorAccess & {
  /** A key where the client wants one; which table rights it needs is known with the plan (`rightsOf`). */
  readonly data: Access
  /** A client-bound key with this right; the admin key alone does not do. */
  management(right: keyof typeof FIXED_RIGHTS): Access
  /**
   * A key with one of these rights, or the admin key. `asData`: as with data operations, policies of the database hold, and nobody needs
   * a key where the client wants none.
   */
  fixed(rights: readonly FixedRight[], more?: { readonly asData?: boolean }): Access
  /** Before the handler, behind the body, which may have taken long to arrive: the key, the client and the session as they are now. */
  renew(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void
}

type FixedRight = keyof typeof FIXED_RIGHTS

/** Where sessions have roles. */
const DATA_SECURITY = [
  ...KEY_SECURITY,
  { apiKey: [], sessionHeader: [] },
  { apiKey: [], sessionToken: [] },
  { apiKey: [], sessionCookie: [] },
]

export function gatewayAccess(
  kernel: Kernel,
  { clients, sessions, adminKey }: { clients: Clients; sessions: Sessions; adminKey: string },
): GatewayAccess {
  const keys: CoherentCache<ApiKey> = createCoherentCache({
    coherence: kernel.coherence,
    max: 10_000,
    load: (publicId) => keyNamed(kernel, publicId),
    tags: ({ publicId }) => [`api_key:${publicId}`],
  })
  const enforcement = keyEnforcement(kernel)
  const operator = adminKeyOf(kernel, adminKey)
  const personaOf = createPersonaLookup(kernel, sessions)
  const grantOf = async (request: FastifyRequest): Promise<Grant> => {
    // Only the configuration gives a client row-level security.
    const hasSessions = clients.configured.get(clientHeader(request) ?? '')?.rowLevelSecurity !== undefined
    const presented = presentedKey(request, operator.isSame, hasSessions)
    if (presented === undefined) return { kind: 'none' }
    if (await operator.proves(request, presented)) return { kind: 'admin' }
    return { kind: 'key', ...(await provenKey(kernel, keys, presented)) }
  }

  /** Policies of the database hold for everybody but the admin key, and keys that are made to pass them. */
  const dataCaller = async (
    request: FastifyRequest,
    reply: FastifyReply,
    grant: Grant,
  ): Promise<GatewayCaller> => {
    const caller = await boundCaller({ request, reply, clients, grant })
    const { rowLevelSecurity } = caller.client
    if (rowLevelSecurity === undefined || passesPolicies(grant)) return caller
    const persona = await personaOf(request, rowLevelSecurity)
    if (caller.driver.as === undefined) throw new Error(`${caller.driver.name} has no row-level security`)
    return { ...caller, persona, driver: caller.driver.as(persona) }
  }

  return {
    ...operatorAccess(operator, grantOf),
    data: {
      name: 'key with the right of each table',
      security: DATA_SECURITY,
      failures: REFUSED.asData,
      needsClient: true,
      async authorize(request, reply) {
        const grant = await grantOf(request)
        if (grant.kind === 'none' && (await enforcement.needsKey(clientHeader(request))))
          throw fail('api_key_required')
        request.gateway = await dataCaller(request, reply, grant)
      },
    },
    management: (right) => ({
      name: `client-bound key with ${right}`,
      security: KEY_SECURITY,
      failures: REFUSED.withClient,
      needsClient: true,
      async authorize(request, reply) {
        const grant = await grantOf(request)
        if (grant.kind !== 'key')
          throw fail('api_key_required', {
            hint: 'Management needs a client-bound key; the admin key is none',
          })
        request.gateway = await boundCaller({ request, reply, clients, grant })
        if (!grantsFixed(grant.key.rights, right, grant.key.clientName !== null)) throw lacking([right])
        if (!right.endsWith('.read')) refuseFrozen(request.gateway.client)
      },
    }),
    fixed: (rights, { asData = false } = {}) => ({
      name: `key with ${rights[0]}, or admin key`,
      security: asData ? DATA_SECURITY : KEY_SECURITY,
      failures: asData ? REFUSED.asData : REFUSED.withClient,
      needsClient: true,
      async authorize(request, reply) {
        const grant = await grantOf(request)
        const isFree = asData && !(await enforcement.needsKey(clientHeader(request)))
        if (grant.kind === 'none' && !isFree) throw fail('api_key_required')
        const caller = await (asData
          ? dataCaller(request, reply, grant)
          : boundCaller({ request, reply, clients, grant }))
        if (!rights.some((right) => hasRight(caller, right))) throw lacking(rights.slice(0, 1))
        request.gateway = caller
      },
    }),
    renew(request, reply, done) {
      const caller = request.gateway
      if (caller === undefined || isAsItWas(caller)) return done()
      renewCaller(request, reply).then(() => done(), done)
    },
  }

  /** What the operator configured does not change while the process runs. */
  function isAsItWas({ grant, persona, client }: GatewayCaller): boolean {
    return !hasChanged(grant) && persona === undefined && client.source === 'config'
  }

  function hasChanged(grant: Grant): boolean {
    if (grant.kind !== 'key') return false
    const hasRunOut = grant.until !== null && grant.until <= kernel.now()
    return hasRunOut || keys.peek(grant.key.publicId) !== grant.key
  }

  async function renewCaller(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { grant } = gatewayCaller(request)
    if (hasChanged(grant)) await request.routeOptions.config.access?.authorize(request, reply)
    else if (gatewayCaller(request).persona !== undefined)
      request.gateway = await dataCaller(request, reply, grant)
    const caller = gatewayCaller(request)
    if (caller.client.source === 'config') return
    const client = await current(clients, caller.client.name)
    request.gateway = { ...caller, client, driver: client.driver }
    const release = clients.retain(client)
    finished(reply.raw, () => release(reply.raw.statusCode < 300))
  }
}

async function current(clients: Clients, name: string): Promise<Client> {
  const client = await clients.find(name)
  if (client === undefined) throw unknownClient()
  return client
}

/** The caller of a route whose access lets nobody in without a client. */
export function gatewayCaller(request: FastifyRequest): GatewayCaller {
  if (request.gateway === undefined)
    throw new Error(`${request.routeOptions.url} has no client: its access is wrong`)
  return request.gateway
}

/** Whether the key carries this right; the admin key, and who needs no key, carry all that a route lets them come to. */
export const hasRight = ({ grant }: GatewayCaller, right: FixedRight): boolean =>
  grant.kind !== 'key' || grantsFixed(grant.key.rights, right, grant.key.clientName !== null)

const passesPolicies = (grant: Grant): boolean =>
  grant.kind === 'admin' ||
  (grant.kind === 'key' &&
    grantsFixed(grant.key.rights, 'gateway.bypass_row_level_security', grant.key.clientName !== null))

/** SQL of the caller's own could take any role that the client's role may take. */
export function requirePassing({ client, grant }: GatewayCaller): void {
  if (client.rowLevelSecurity !== undefined && !passesPolicies(grant))
    throw lacking(['gateway.bypass_row_level_security'])
}

/** What planning asks: every table that a request touches needs its own right, whatever path leads there. */
export function rightsOf({ client, grant }: GatewayCaller): Rights {
  const may = (right: TableRight) => grant.kind !== 'key' || grantsTable(grant.key.rights, right)
  return {
    may,
    require(required) {
      const isWrite = required.some(({ action }) => action !== 'read')
      if (client.isLogging && isWrite) throw fail('read_only')
      const lacks = required.filter((right) => !may(right))
      if (lacks.length > 0) throw lacking([...new Set(lacks.map(nameOfRight))])
      if (isWrite) refuseFrozen(client)
    },
  }
}

/** Told only to who has the right to write. Its driver takes no write either. */
function refuseFrozen({ isFrozen }: Pick<Client, 'isFrozen'>): void {
  if (isFrozen) throw fail('client_frozen', { hint: 'PUT /admin/clients/{name}/freeze thaws it' })
}

const lacking = (rights: readonly string[]) =>
  fail('insufficient_rights', {
    hint: `The key needs ${rights.join(', ')}`,
    details: { required_right: rights[0], required_rights: rights },
  })

type Arriving = {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly clients: Clients
  readonly grant: Grant
}

/** The rest of the order of checks: header, existence, binding. */
async function boundCaller({ request, reply, clients, grant }: Arriving): Promise<GatewayCaller> {
  const client = await calledClient(request, clients)
  request.bodyPayer = `client:${client.name}`
  if (grant.kind === 'key' && !isFor(grant.key, client)) throw fail('api_key_client_mismatch')
  return {
    client,
    driver: client.driver,
    persona: undefined,
    grant,
    requestId: request.id,
    presence: presenceOf(reply),
  }
}

/** A key without a client opens any; but the logging client only a key that names it. */
const isFor = ({ clientName }: ApiKey, client: Client): boolean =>
  clientName === null ? !client.isLogging : clientName === client.name
