import { hash, timingSafeEqual } from 'node:crypto'
import { finished } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Client, Clients } from '#databases/clients.ts'
import { type CoherentCache, coherentCache } from '#kernel/db/cache.ts'
import type { Access } from '#kernel/http/access.ts'
import { HEADER } from '#kernel/http/words.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from './errors.ts'
import { keyEnforcement } from './keys/config.ts'
import { type ApiKey, keyNamed } from './keys/keys.ts'
import { type FIXED_RIGHTS, grantsFixed, grantsTable, nameOfRight, type TableRight } from './keys/rights.ts'
import { isSecretOf, NOBODY, parseKey } from './keys/secret.ts'

/** What a request may do: all (the admin key), what its key's rights say, or what needs no key. */
export type Grant =
  | { readonly kind: 'admin' }
  | { readonly kind: 'key'; readonly key: ApiKey }
  | { readonly kind: 'none' }

/** Who is calling the gateway, and on which client. */
export type GatewayCaller = { readonly client: Client; readonly grant: Grant; readonly requestId: string }

declare module 'fastify' {
  interface FastifyRequest {
    gateway: GatewayCaller | undefined
  }
}

export type GatewayAccess = {
  /** The static admin key. */
  readonly admin: Access
  /** A key where the client wants one; which table rights it needs is known with the plan (`requireTables`). */
  readonly data: Access
  /** The admin key, or the token that `metrics.token` names. */
  readonly metrics: Access
  /** A client-bound key with this right; the admin key alone does not do. */
  management(right: keyof typeof FIXED_RIGHTS): Access
  /**
   * A key with one of these rights, or the admin key. `keyless`: nobody needs a key where the client wants none for data.
   */
  fixed(rights: readonly FixedRight[], more?: { readonly keyless?: boolean }): Access
  /** Before the handler, behind the body, which may have taken long to arrive: the client as it is now. */
  renew(request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void
}

type FixedRight = keyof typeof FIXED_RIGHTS

const KEY_SECURITY = [{ apiKey: [] }, { apiKeyBearer: [] }]

export function gatewayAccess(kernel: Kernel, clients: Clients, adminKey: string): GatewayAccess {
  const keys: CoherentCache<ApiKey> = coherentCache({
    coherence: kernel.coherence,
    max: 10_000,
    load: (publicId) => keyNamed(kernel, publicId),
    tags: ({ publicId }) => [`api_key:${publicId}`],
  })
  const enforcement = keyEnforcement(kernel)
  const isAdminKey = sameAs(adminKey)
  const { token: metricsToken } = kernel.config.metrics
  const isScraper = metricsToken === undefined ? () => false : sameAs(`Bearer ${metricsToken}`)
  const grantOf = async (request: FastifyRequest): Promise<Grant> => {
    const presented = presentedKey(request, isAdminKey)
    if (presented === undefined) return { kind: 'none' }
    if (isAdminKey(presented)) return { kind: 'admin' }
    return { kind: 'key', key: await provenKey(kernel, keys, presented) }
  }

  const admin: Access = {
    name: 'admin key',
    security: [{ adminKey: [] }, ...KEY_SECURITY],
    async authorize(request) {
      const special = request.headers[HEADER.adminKey]
      if (typeof special === 'string' && isAdminKey(special)) return
      const grant = await grantOf(request)
      if (grant.kind === 'key') throw fail('insufficient_rights', { hint: 'This needs the static admin key' })
      if (grant.kind === 'none') throw fail(special === undefined ? 'api_key_required' : 'invalid_api_key')
    },
  }
  return {
    admin,
    metrics: {
      ...admin,
      name: 'admin key or metrics token',
      authorize(request, reply) {
        return isScraper(request.headers.authorization ?? '') ? undefined : admin.authorize(request, reply)
      },
    },
    data: {
      name: 'key with the right of each table',
      security: KEY_SECURITY,
      needsClient: true,
      async authorize(request) {
        const grant = await grantOf(request)
        if (grant.kind === 'none' && (await enforcement.needsKey(clientHeader(request))))
          throw fail('api_key_required')
        request.gateway = await boundCaller(request, clients, grant)
      },
    },
    management: (right) => ({
      name: `client-bound key with ${right}`,
      security: KEY_SECURITY,
      needsClient: true,
      async authorize(request) {
        const grant = await grantOf(request)
        if (grant.kind !== 'key')
          throw fail('api_key_required', {
            hint: 'Management needs a client-bound key; the admin key is none',
          })
        request.gateway = await boundCaller(request, clients, grant)
        if (!grantsFixed(grant.key.rights, right, grant.key.clientName !== null)) throw lacking([right])
        if (!right.endsWith('.read')) refuseFrozen(request.gateway.client)
      },
    }),
    fixed: (rights, { keyless = false } = {}) => ({
      name: `key with ${rights[0]}, or admin key`,
      security: KEY_SECURITY,
      needsClient: true,
      async authorize(request) {
        const grant = await grantOf(request)
        const isFree = keyless && !(await enforcement.needsKey(clientHeader(request)))
        if (grant.kind === 'none' && !isFree) throw fail('api_key_required')
        const caller = await boundCaller(request, clients, grant)
        if (!rights.some((right) => hasRight(caller, right))) throw lacking(rights.slice(0, 1))
        request.gateway = caller
      },
    }),
    renew(request, reply, done) {
      // What the operator configured does not change while the process runs.
      if (request.gateway === undefined || request.gateway.client.source === 'config') return done()
      renewed(request.gateway, clients).then((caller) => {
        request.gateway = caller
        const release = clients.hold(caller.client)
        finished(reply.raw, () => release(reply.raw.statusCode < 300))
        done()
      }, done)
    },
  }
}

async function renewed(caller: GatewayCaller, clients: Clients): Promise<GatewayCaller> {
  const client = await clients.find(caller.client.name)
  if (client === undefined) throw unknownClient()
  return { ...caller, client }
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

/** Every table that a request touches needs its own right, whatever path leads there. */
export function requireTables(caller: GatewayCaller, touched: readonly TableRight[]): void {
  const isWrite = touched.some(({ action }) => action !== 'read')
  if (caller.client.isLogging && isWrite) throw fail('read_only')
  const lacks = lacksTables(caller, touched)
  if (lacks.length > 0) throw lacking([...new Set(lacks.map(nameOfRight))])
  if (isWrite) refuseFrozen(caller.client)
}

/** Told only to who has the right to write. Its driver takes no write either. */
function refuseFrozen({ isFrozen }: Client): void {
  if (isFrozen) throw fail('client_frozen', { hint: 'PUT /admin/clients/{name}/freeze thaws it' })
}

/** Those of the rights that the caller does not have. */
export function lacksTables<T extends TableRight>(
  { grant }: GatewayCaller,
  touched: readonly T[],
): readonly T[] {
  return grant.kind === 'key' ? touched.filter((right) => !grantsTable(grant.key.rights, right)) : []
}

const lacking = (rights: readonly string[]) =>
  fail('insufficient_rights', {
    hint: `The key needs ${rights.join(', ')}`,
    details: { required_right: rights[0], required_rights: rights },
  })

function clientHeader({ headers }: FastifyRequest): string | undefined {
  const name = headers[HEADER.client]
  return typeof name === 'string' && name !== '' ? name : undefined
}

const unknownClient = () => fail('unknown_client', { hint: 'GET /clients lists the registered ones' })

/** The rest of the order of checks: header, existence, binding. */
async function boundCaller(request: FastifyRequest, clients: Clients, grant: Grant): Promise<GatewayCaller> {
  const name = clientHeader(request)
  const client = name === undefined ? undefined : await clients.find(name)
  if (client === undefined && (await clients.names()).length === 0)
    throw fail('no_client', {
      hint: 'Add an entry under clients in gatehouse.yaml, or register one: POST /admin/clients',
    })
  if (name === undefined) {
    throw fail('missing_client_header', { details: { missing_header: 'X-Service-Client' } })
  }
  if (client === undefined) throw unknownClient()
  if (grant.kind === 'key' && !isFor(grant.key, client)) throw fail('api_key_client_mismatch')
  return { client, grant, requestId: request.id }
}

/** A key without a client opens any; but the logging client only a key that names it. */
const isFor = ({ clientName }: ApiKey, client: Client): boolean =>
  clientName === null ? !client.isLogging : clientName === client.name

/**
 * The one key of a request (gateway.md 3). A Bearer token counts when it is one of ours, or when nothing else stands for
 * a key: beside another key it may be a session's.
 */
function presentedKey(request: FastifyRequest, isAdminKey: (text: string) => boolean): string | undefined {
  const { headers } = request
  const { api_key: inQuery } = request.query as { api_key?: unknown } // any query
  const plain = [headers[HEADER.serviceKey], headers.apikey, headers['x-api-key'], inQuery]
    .flat()
    .filter((key): key is string => typeof key === 'string' && key !== '')
  const [, bearer] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? []
  const bearerCounts =
    bearer !== undefined && (plain.length === 0 || bearer.startsWith('svc_') || isAdminKey(bearer))
  const all = new Set(bearerCounts ? [...plain, bearer] : plain)
  if (all.size > 1) throw fail('ambiguous_api_key')
  const [only] = all
  return only
}

async function provenKey(kernel: Kernel, keys: CoherentCache<ApiKey>, presented: string): Promise<ApiKey> {
  const text = parseKey(presented)
  const found = text === undefined ? undefined : await lookUp(keys, text.publicId)
  const isCurrent = isSecretOf(found ?? NOBODY, text?.secret ?? '')
  if (found === undefined || !(isCurrent || isPrevious(found, text?.secret ?? '', kernel.now()))) {
    throw fail('invalid_api_key')
  }
  if (!found.isActive) throw fail('inactive_api_key')
  if (found.expiresAt !== null && found.expiresAt <= kernel.now()) throw fail('expired_api_key')
  return found
}

async function lookUp(keys: CoherentCache<ApiKey>, publicId: string): Promise<ApiKey | undefined> {
  try {
    return keys.peek(publicId) ?? (await keys.get(publicId))
  } catch (cause) {
    // Whatever the reason: without the store nobody is let in.
    throw fail('api_key_validation_unavailable', { cause })
  }
}

/** The secret before a rotation, while its grace lasts. */
function isPrevious(key: ApiKey, secret: string, now: Date): boolean {
  const { previousSalt: salt, previousSecretHash: secretHash, previousExpiresAt } = key
  if (salt === null || secretHash === null || previousExpiresAt === null) return false
  return previousExpiresAt > now && isSecretOf({ salt, secretHash }, secret)
}

/** Compares in constant time, whatever the lengths; the secret is hashed once. */
function sameAs(secret: string): (text: string) => boolean {
  const digest = hash('sha256', secret, 'buffer')
  return (text) => timingSafeEqual(hash('sha256', text, 'buffer'), digest)
}
