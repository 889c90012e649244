import { Type } from 'typebox'
import type { Clients } from '#databases/clients/clients.ts'
import { DRIVER_NAMES } from '#kernel/config/addresses.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, NOT_EMPTY, Nullable, OneOf, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { success, successOf } from '../envelope.ts'
import { changeClient, freezeClient, registerClient, removeClient } from './clients.ts'
import { protectClient } from './protect.ts'
import { listRecords, listRuntime, recordOf } from './records.ts'

const ClientNames = Type.Object({
  clients: Type.Array(Type.String(), { examples: [['default', 'logging']] }),
})
/** Default for a new client: postgresql. */
const DRIVER = named('DriverName')
const VARIABLE = '^[A-Za-z_][A-Za-z0-9_]{0,127}$'
const REMOVED = 'Null: there is none'
const REQUEST_FIELDS = {
  driver: Type.Optional(OneOf(DRIVER_NAMES, DRIVER)),
  url: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4_096,
      examples: ['postgres://reporting:password@db:5432/sales'],
    }),
  ),
  url_env_var: Type.Optional(
    Type.String({
      pattern: VARIABLE,
      description:
        'Environment variable of the service that contains the URL, instead of url: letters, digits and _',
    }),
  ),
  direct_url: Type.Optional(
    Nullable(
      Type.String({
        minLength: 1,
        maxLength: 4_096,
        description: `The same database and role past the pooler at url: for backups, restores and management. ${REMOVED}`,
        examples: ['postgres://reporting:password@db:5432/sales'],
      }),
    ),
  ),
  direct_url_env_var: Type.Optional(
    Nullable(
      Type.String({
        pattern: VARIABLE,
        description: `Environment variable of the service that contains it, instead of direct_url. ${REMOVED}`,
      }),
    ),
  ),
  description: Type.Optional(Nullable(Type.String({ maxLength: 1_000 }))),
  is_active: Type.Optional(Type.Boolean({ default: true })),
  metadata: Type.Optional(Type.Record(Type.String({ maxLength: 200 }), Type.Unknown())),
}
// The registry validates the name, with a better message than a pattern gives.
const NewClient = Type.Object({
  client_name: Type.String({ maxLength: 200, examples: ['reporting'] }),
  ...REQUEST_FIELDS,
})
const ClientChange = Type.Object(REQUEST_FIELDS, NOT_EMPTY)
const ByName = Type.Object({ name: Type.String({ maxLength: 63, examples: ['reporting'] }) })

/** A row of an older version may have an unknown driver. */
const DriverWord = Type.Unsafe<string>({ type: 'string', enum: DRIVER_NAMES, ...DRIVER })

const SeenAt = Nullable({
  ...Timestamp,
  description: 'Time when its database last completed a request, to the minute',
})

const ClientRecord = Type.Object(
  {
    id: Nullable(Id),
    client_name: Type.String(),
    driver: DriverWord,
    description: Nullable(Type.String()),
    url: Nullable(Type.String({ description: 'Shown without password and query' })),
    url_env_var: Nullable(Type.String()),
    direct_url: Nullable(Type.String({ description: 'Shown without password and query' })),
    direct_url_env_var: Nullable(Type.String()),
    source: OneOf(['config', 'database'], named('ClientSource')),
    is_active: Type.Boolean(),
    is_frozen: Type.Boolean(),
    metadata: Type.Record(Type.String(), Type.Unknown()),
    last_seen_at: SeenAt,
    created_at: Nullable(Timestamp),
    updated_at: Nullable(Timestamp),
  },
  named('ClientRecord'),
)
const Protected = Type.Object({ client_name: Type.String(), enabled: Type.Boolean() })
const REFUSED_CLIENT = [
  'invalid_client_name',
  'client_exists',
  'client_configured',
  'client_not_found',
  'invalid_client_url',
  'refused_client',
  'unsafe_new_client',
]

const Runtime = Type.Object(
  {
    client_name: Type.String(),
    driver: DriverWord,
    source: OneOf(['config', 'database'], named('ClientSource')),
    is_active: Type.Boolean(),
    is_frozen: Type.Boolean(),
    pool: Type.Object(
      { total: Type.Integer(), idle: Type.Integer(), waiting: Type.Integer() },
      named('ConnectionPool'),
    ),
    circuit: OneOf(['closed', 'open', 'half_open']),
  },
  named('ClientRuntime'),
)
const Stored = Type.Object({
  status: Type.Literal('success'),
  message: Type.String(),
  data: ClientRecord,
  reachable: Type.Boolean({ description: 'Whether its database responded' }),
})

export function clientRoutes(app: App, kernel: Kernel, clients: Clients, access: GatewayAccess): void {
  const config = { access: access.operator('clients') }
  const changing = { ...config, failures: REFUSED_CLIENT }
  for (const url of ['/clients', '/schema/clients']) {
    app.route({
      method: 'GET',
      url,
      config,
      schema: {
        operationId: 'listClientNames',
        summary: 'List registered database clients',
        response: { 200: ClientNames },
      },
      handler: async () => ({ clients: [...(await clients.names())] }),
    })
  }
  app.route({
    method: 'GET',
    url: '/admin/clients',
    config,
    schema: {
      operationId: 'listClients',
      summary: 'Database clients with the connections of this process',
      response: {
        200: successOf(Type.Object({ clients: Type.Array(ClientRecord), runtime: Type.Array(Runtime) })),
      },
    },
    handler: async () => {
      const records = await listRecords(kernel, clients)
      return success(`Listed ${records.length} clients`, {
        clients: records,
        runtime: listRuntime(clients, records),
      })
    },
  })
  app.route({
    method: 'POST',
    url: '/admin/clients',
    config: changing,
    schema: {
      operationId: 'registerClient',
      summary: 'Register a database client',
      body: NewClient,
      response: { 201: Stored },
    },
    handler: async (request, reply) => {
      const { row, reachable } = await registerClient(request.kernel, clients, request.body)
      const message = reachable ? 'Client registered' : 'Client registered; its database does not respond yet'
      return reply.code(201).send({ ...success(message, recordOf(kernel, row)), reachable })
    },
  })
  app.route({
    method: 'PATCH',
    url: '/admin/clients/:name',
    config: changing,
    schema: {
      operationId: 'changeClient',
      summary: 'Change a database client',
      params: ByName,
      body: ClientChange,
      response: { 200: Stored },
    },
    handler: async (request) => {
      const { params, body } = request
      const { row, reachable } = await changeClient(request.kernel, clients, params.name, body)
      const message = reachable ? 'Client changed' : 'Client changed; its database does not respond yet'
      return { ...success(message, recordOf(kernel, row)), reachable }
    },
  })
  app.route({
    method: 'PUT',
    url: '/admin/clients/:name/freeze',
    config: changing,
    schema: {
      operationId: 'freezeClient',
      summary: 'Freeze or unfreeze writes on a database client',
      params: ByName,
      body: Type.Object({ is_frozen: Type.Boolean({ examples: [true] }) }),
      response: { 200: successOf(ClientRecord) },
    },
    handler: async (request) => {
      const { params, body } = request
      const { is_frozen } = body
      const row = await freezeClient(request.kernel, clients, params.name, is_frozen)
      return success(is_frozen ? 'Client frozen' : 'Client thawed', recordOf(kernel, row))
    },
  })
  app.route({
    method: 'PUT',
    url: '/admin/clients/:name/row-level-security',
    config: {
      access: access.operator('clients', { isProven: true }),
      failures: ['client_not_found', 'row_level_security_configured'],
    },
    schema: {
      operationId: 'protectClient',
      summary: 'Switch row-level security of the built-in client on',
      description:
        'Where no setting decides about it. Keys and sessions without gateway.bypass_row_level_security then see and change only what policies allow. Only the setting switches it off.',
      params: ByName,
      body: Type.Object({ enabled: Type.Boolean({ examples: [true] }) }),
      response: { 200: successOf(Protected) },
    },
    handler: async (request) => {
      const { params, body } = request
      await protectClient(request.kernel, clients, params.name, body.enabled)
      return success('Row-level security is on', { client_name: params.name, enabled: true })
    },
  })
  app.route({
    method: 'DELETE',
    url: '/admin/clients/:name',
    config: changing,
    schema: {
      operationId: 'removeClient',
      summary: 'Remove a database client; its database is not changed',
      params: ByName,
      response: { 200: successOf(Type.Object({ client_name: Type.String() })) },
    },
    handler: async (request) => {
      const { params } = request
      await removeClient(request.kernel, clients, params.name)
      return success('Client removed', { client_name: params.name })
    },
  })
}
