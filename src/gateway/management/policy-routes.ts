import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { success, successOf } from '../envelope.ts'
import { readRowLevelSecurity, setRowLevelSecurity } from './policies.ts'
import { nameLike, type RouteParts, SchemaName } from './route-parts.ts'

const Command = OneOf(['select', 'insert', 'update', 'delete', 'all'])
const Expression = Type.String({ minLength: 1, maxLength: 5_000 })

/** Which members belong together is judged by `readPolicy` (policies.ts), with a failure for each case. */
const Policy = Type.Object(
  {
    preset: Type.Optional(
      OneOf(['owner', 'organization', 'public_read', 'signed_in_read'], {
        description:
          'owner: the user’s own rows; organization: rows of the session’s organization; public_read and signed_in_read: all rows may be read. Takes no other member but column and insert_only_as_self. The key needs the rights that it gives: on the table read, write and delete, or read and gateway.bypass_row_level_security',
      }),
    ),
    column: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 63,
        description:
          'Of owner (user_id) and organization (organization_id); its default becomes the id of the session',
      }),
    ),
    insert_only_as_self: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 63,
        examples: ['author_id'],
        description:
          'Of organization: a column that holds the session’s user when a row is inserted and never changes. Its default becomes the user’s id',
      }),
    ),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 63, description: 'A policy of your own' })),
    command: Type.Optional(Command),
    roles: Type.Optional(
      Type.Array(nameLike('authenticated'), {
        minItems: 1,
        maxItems: 2,
        description: 'Of the two roles of callers: grants names them',
      }),
    ),
    using: Type.Optional(Expression),
    check: Type.Optional(Expression),
  },
  named('Policy'),
)

const NewSecurity = Type.Object({
  schema_name: SchemaName,
  enabled: Type.Boolean({
    description: 'false: the policies are removed and callers lose all rights on the table',
    examples: [true],
  }),
  policies: Type.Optional(
    Type.Array(Policy, {
      maxItems: 50,
      description: 'The whole list, required with enabled: true; [] removes every policy',
      examples: [
        [{ preset: 'owner' }],
        [{ preset: 'organization', column: 'organization_id', insert_only_as_self: 'author_id' }],
      ],
    }),
  ),
  replace: Type.Optional(
    Type.Boolean({ default: false, description: 'Also removes policies that others have made' }),
  ),
})

const OtherPolicy = Type.Object(
  {
    name: Type.String(),
    command: Command,
    permissive: Type.Boolean(),
    roles: Type.Array(Type.String()),
    using: Nullable(Type.String()),
    check: Nullable(Type.String()),
  },
  named('OtherPolicy'),
)
const ReplacedDefault = Type.Object(
  { column: Type.String(), default_expression: Type.String() },
  named('ReplacedDefault'),
)
const Grant = Type.Object({ role: Type.String(), privileges: Type.Array(Type.String()) }, named('TableGrant'))

const Security = Type.Object(
  {
    schema_name: Type.String(),
    table_name: Type.String(),
    enabled: Type.Boolean(),
    policies: Type.Array(Policy),
    other_policies: Type.Array(OtherPolicy),
    replaced_defaults: Type.Array(ReplacedDefault, {
      description:
        'Defaults that presets have replaced. Each comes back when its preset goes, unless the column has another default by then',
    }),
    grants: Type.Array(Grant),
  },
  named('RowLevelSecurity'),
)

const Params = Type.Object({ table_name: nameLike('books') })

export function policyRoutes(app: App, { routeOf, changerOf }: RouteParts): void {
  app.route({
    ...routeOf('read_row_level_security'),
    schema: {
      operationId: 'getRowLevelSecurity',
      summary: 'Policies of a table, and the rights of callers on it',
      params: Params,
      querystring: Type.Object({ schema_name: SchemaName }),
      response: { 200: successOf(Security) },
    },
    handler: async (request) => {
      const { schema_name: schema = 'public' } = request.query
      const { table_name: table } = request.params
      const found = await readRowLevelSecurity(gatewayCaller(request), { schema, table })
      return success(`Row-level security of ${schema}.${table}`, found)
    },
  })
  app.route({
    ...routeOf('row_level_security'),
    schema: {
      operationId: 'setRowLevelSecurity',
      summary: 'Set the policies of a table as a whole',
      params: Params,
      body: NewSecurity,
      response: { 200: successOf(Security) },
    },
    handler: async (request, reply) => {
      const { schema_name: schema = 'public', ...asked } = request.body
      const { table_name: table } = request.params
      const set = await setRowLevelSecurity(changerOf(request, reply), { schema, table }, asked)
      return success(`Set row-level security of ${schema}.${table}`, set)
    },
  })
}
