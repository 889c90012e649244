import type { Clients } from '#databases/clients/clients.ts'
import type { JwtKeys } from '#identity/jwt/key-ring.ts'
import { createSessionOfJwt } from '#identity/jwt/session-of-jwt.ts'
import type { Sessions } from '#identity/live-sessions.ts'
import type { OperatorRight } from '#kernel/config/sections/auth-admin.ts'
import type { Access } from '#kernel/http/access.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail, REFUSED } from '../errors.ts'
import { adminKeyOf } from '../keys/admin-key.ts'
import { type Enforcement, keyEnforcement } from '../keys/config.ts'
import { createPublicAccess } from '../public-routes/access.ts'
import { createOpenRoutes } from '../public-routes/open-routes.ts'
import { calledClient, clientHeader } from './called-client.ts'
import { gatewayCaller } from './caller.ts'
import { type FixedRight, requireRight, requireWritable } from './caller-rights.ts'
import { createPersonaLookup, createSessionReader } from './caller-role.ts'
import { type ClientOverride, createClientOverride } from './client-override.ts'
import { createGrants, type Grants } from './grants.ts'
import {
  createDataIdentify,
  createIdentify,
  createSqlIdentify,
  createTakeRole,
  type Identify,
} from './identify.ts'
import { createSessionGrants } from './operating-session.ts'
import { KEY_SECURITY, type OperatorAccess, type OperatorOptions, operatorAccess } from './operator-access.ts'
import { createRenewal, createRetention, type Renewal } from './renewal.ts'

export type GatewayAccess = OperatorAccess & {
  /** The same, and a client that exists. */
  operatorWithClient(right: OperatorRight, more?: OperatorOptions): Access
  /** Requires a key if the client enforces keys. Table rights are checked when the plan is known (`rightsOf`). */
  readonly data: Access
  /** Requires a client-bound key, or a session's role, with this right. The admin key is not accepted. */
  management(right: FixedRight): Access
  /**
   * Requires a key with one of these rights, or the admin key. With `asData`, row-level security applies as to data operations, and no key
   * is needed if the client does not enforce keys.
   */
  fixed(rights: readonly FixedRight[], more?: { readonly asData?: boolean }): Access
  /** Requires a key with a right to SQL, or the admin key, and no session on clients with row-level security. */
  readonly sql: Access
  /** Requires a key with this right, or the admin key, and no client. */
  keyed(right: FixedRight): Access
  /** Requires what the record of the called public route asks for. */
  readonly publicCall: Access
  /** The same, to follow its rows. */
  readonly publicStream: Access
  /** Origins whose pages may call this public route; undefined if there is none. */
  originsOf(routeKey: string, address: string): Promise<readonly string[] | undefined>
  readonly renew: Renewal
  /** For operations on two clients. */
  readonly override: ClientOverride
}

/** Security schemes for clients with row-level security, where requests may have a session as well. */
const DATA_SECURITY = [
  ...KEY_SECURITY,
  { apiKey: [], sessionHeader: [] },
  { apiKey: [], sessionToken: [] },
  { apiKey: [], sessionCookie: [] },
]

type CallerParts = {
  readonly clients: Clients
  readonly sessions: Sessions
  readonly jwtKeys: JwtKeys
  readonly adminKey: string
}

export function gatewayAccess(
  kernel: Kernel,
  { clients, sessions, jwtKeys, adminKey }: CallerParts,
): GatewayAccess {
  const operator = adminKeyOf(kernel, adminKey)
  const grants = createGrants(kernel, clients, operator, createSessionGrants(kernel, sessions))
  const identify = createIdentify(clients)
  const presentedSession = createSessionReader(kernel, operator.isSame)
  const sessionOfJwt = createSessionOfJwt(kernel, jwtKeys, sessions)
  const personaOf = createPersonaLookup(kernel, { sessions, sessionOfJwt }, presentedSession)
  const takeRole = createTakeRole(kernel, personaOf)
  const identifyForData = createDataIdentify(identify, takeRole)
  const enforcement = keyEnforcement(kernel)
  const retain = createRetention(clients)
  const data = dataAccess(grants, identifyForData, enforcement)
  const find = createOpenRoutes(kernel)
  const publicParts = { clients, grants, find, personaOf, security: [{}, ...DATA_SECURITY] }
  const operating = operatorAccess(operator, grants.of)
  return {
    ...operating,
    operatorWithClient: (right, more) => withClient(operating.operator(right, more), clients),
    data,
    management: (right) => managementAccess(grants, identify, right),
    fixed: (rights, { asData = false } = {}) =>
      asData ? fixedDataAccess(data, rights) : fixedAccess(grants, identify, rights),
    sql: sqlAccess(grants, createSqlIdentify(identify, personaOf)),
    keyed: (right) => keyedAccess(grants, right),
    publicCall: createPublicAccess(kernel, publicParts),
    publicStream: createPublicAccess(kernel, publicParts, 'subscribe'),
    originsOf: async (routeKey, address) => (await find(routeKey, address))?.record.allowedOrigins,
    renew: createRenewal(clients, grants, identifyForData, retain),
    override: createClientOverride({ clients, enforcement, takeRole, retain }),
  }
}

const dataAccess = (grants: Grants, identify: Identify, { needsKey }: Enforcement): Access => ({
  name: 'key or session with the right of each table',
  security: DATA_SECURITY,
  failures: REFUSED.asData,
  needsClient: true,
  takesProject: true,
  async authorize(request, reply) {
    const grant = await grants.of(request)
    if (grant.kind === 'none' && (await needsKey(clientHeader(request)))) throw fail('api_key_required')
    request.gateway = await identify(request, reply, grant)
  },
})

const withClient = (operator: Access, clients: Clients): Access => ({
  ...operator,
  failures: REFUSED.asAdminOfClient,
  needsClient: true,
  async authorize(request, reply) {
    await operator.authorize(request, reply)
    await calledClient(request, clients)
  },
})

const managementAccess = (grants: Grants, identify: Identify, right: FixedRight): Access => ({
  name: `client-bound key or session with ${right}`,
  security: KEY_SECURITY,
  failures: REFUSED.withClient,
  needsClient: true,
  takesProject: true,
  async authorize(request, reply) {
    const grant = await grants.of(request)
    if (grant.kind === 'admin' || grant.kind === 'none')
      throw fail('api_key_required', {
        hint: 'Management requires a key that is bound to a client; the admin key is not accepted',
      })
    const caller = await identify(request, reply, grant)
    requireRight(caller, [right])
    if (!right.endsWith('.read')) requireWritable(caller.client)
    request.gateway = caller
  },
})

const fixedName = ([first]: readonly FixedRight[]): string => `key or session with ${first}, or admin key`

const fixedAccess = (grants: Grants, identify: Identify, rights: readonly FixedRight[]): Access => ({
  name: fixedName(rights),
  security: KEY_SECURITY,
  failures: REFUSED.withClient,
  needsClient: true,
  takesProject: true,
  async authorize(request, reply) {
    const grant = await grants.of(request)
    if (grant.kind === 'none') throw fail('api_key_required')
    const caller = await identify(request, reply, grant)
    requireRight(caller, rights)
    request.gateway = caller
  },
})

const sqlAccess = (grants: Grants, identify: Identify): Access => ({
  ...fixedAccess(grants, identify, ['gateway.query', 'gateway.query.read']),
  failures: REFUSED.asSql,
})

const keyedAccess = (grants: Grants, right: FixedRight): Access => ({
  name: fixedName([right]),
  security: KEY_SECURITY,
  failures: REFUSED.withKey,
  async authorize(request) {
    const grant = await grants.of(request)
    if (grant.kind === 'none') throw fail('api_key_required')
    requireRight({ grant }, [right])
    request.grant = grant
  },
})

const fixedDataAccess = (data: Access, rights: readonly FixedRight[]): Access => ({
  ...data,
  name: fixedName(rights),
  async authorize(request, reply) {
    await data.authorize(request, reply)
    requireRight(gatewayCaller(request), rights)
  },
})
