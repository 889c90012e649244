import { type Static, Type } from 'typebox'
import { FAILURES_OF } from '#databases/failures.ts'
import { named } from '#kernel/http/document/components.ts'
import { edge } from '#kernel/http/failures.ts'
import { Nullable, OneOf } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { gatewayCaller } from '../caller/caller.ts'
import { columnsOf, conditionsOf, Row, SortBy } from '../data/grammar.ts'
import { tail } from '../data/result-facts.ts'
import { around, sendWhole } from '../data/send-result.ts'
import { NEEDED, seeRowsAs } from './see-as.ts'
import type { AskedSubject } from './subject.ts'

/** Rows of one answer: it is a look, no export. */
const [MOST, DEFAULT] = [100, 50]

const bodyOf = ({ config: { limits } }: Kernel) =>
  Type.Object({
    user_id: Type.Optional(
      Type.String({ format: 'uuid', description: 'A user of this service. Either this or role' }),
    ),
    role: Type.Optional(
      OneOf(['anonymous', 'signed_in'], {
        description: 'anonymous: without a session; signed_in: with one, of a user whom no row names',
        examples: ['anonymous'],
      }),
    ),
    organization_id: Type.Optional(
      Type.String({ format: 'uuid', description: 'The active organization of the user. Default: none' }),
    ),
    two_factor: Type.Optional(
      Type.Boolean({ description: 'Whether the user has shown a second factor. Default: if there is one' }),
    ),
    table_name: Type.String({
      minLength: 1,
      maxLength: 131,
      description: 'The table, optionally as schema.table',
      examples: ['books'],
    }),
    schema_name: Type.Optional(Type.String({ minLength: 1, maxLength: 63, default: 'public' })),
    columns: Type.Optional(columnsOf(limits.columns)),
    conditions: Type.Optional(conditionsOf(limits.conditions)),
    sort_by: Type.Optional(SortBy),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MOST, default: DEFAULT })),
    offset: Type.Optional(Type.Integer({ minimum: 0, default: 0 })),
  })

const Refused = Type.Object({ code: Type.String(), message: Type.String() }, named('SeenRefusal'))

const SeenAs = Type.Object(
  {
    status: Type.Literal('success'),
    data: Type.Array(Row, { description: 'The rows that are seen' }),
    message: Type.String(),
    database_role: Type.String({ description: 'The role of the database that reads' }),
    claims: Type.Record(Type.String(), Type.Unknown(), {
      description: 'As policies find them in request.claims',
    }),
    refused: Nullable(
      Type.Unsafe<Static<typeof Refused> | null>({
        ...Refused,
        description: 'What a request would be answered in place of rows',
      }),
    ),
  },
  named('RowsSeenAs'),
)

export function seeAsRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  app.route({
    method: 'POST',
    url: '/see-as',
    config: {
      access: access.fixed([NEEDED]),
      failures: [...FAILURES_OF.data, 'row_level_security_off', 'user_not_found', 'not_a_member'],
    },
    schema: {
      operationId: 'seeRowsAs',
      summary: 'Rows of a table, as a user or a visitor sees them now',
      description:
        'Reads by the role and the claims of a session that the user would have, and writes nothing. The audit trail shows who has looked, as whom, and at which table (rows.seen_as). The right to read the table is needed too, and for a view one to SQL.',
      body: bodyOf(kernel),
      response: { 200: SeenAs },
    },
    handler: async (request, reply) => {
      const { user_id, role, organization_id, two_factor, limit = DEFAULT, ...body } = request.body
      const asked = subjectIn({ user_id, role, organization_id, two_factor })
      const { subject, rows, refusal } = await seeRowsAs(request.kernel, gatewayCaller(request), {
        body: { ...body, limit },
        asked,
      })
      const { role: database_role, claims } = subject.persona
      const refused = refusal === undefined ? null : { code: refusal.code, message: refusal.message }
      const end = () =>
        tail({
          message: refused === null ? `Seen ${rows?.facts().rows ?? 0} rows` : 'Seen no rows: refused',
          database_role,
          claims: JSON.parse(claims),
          refused,
        })
      if (rows === undefined) return sendWhole(reply, [HEAD, NO_ROWS, end()])
      if (!(Symbol.asyncIterator in rows.json)) return sendWhole(reply, [HEAD, ...rows.json, end()])
      return reply.type('application/json; charset=utf-8').sendLong(around(rows.json, HEAD, end))
    },
  })
}

const [HEAD, NO_ROWS] = [Buffer.from('{"status":"success","data":'), Buffer.from('[]')]

type Named = {
  readonly user_id: string | undefined
  readonly role: 'anonymous' | 'signed_in' | undefined
  readonly organization_id: string | undefined
  readonly two_factor: boolean | undefined
}

function subjectIn({
  user_id: userId,
  role,
  organization_id: organizationId,
  two_factor: twoFactor,
}: Named): AskedSubject {
  const refuse = (field: string, message: string) =>
    edge('validation_error', { message, details: { field, in: 'body' } })
  if ((userId === undefined) === (role === undefined)) throw refuse('user_id', 'Name either user_id or role')
  if (userId !== undefined)
    return {
      userId,
      ...(organizationId !== undefined && { organizationId }),
      ...(twoFactor !== undefined && { twoFactor }),
    }
  if (organizationId !== undefined || twoFactor !== undefined)
    throw refuse(organizationId === undefined ? 'two_factor' : 'organization_id', 'Only a user has this')
  // Just checked.
  return { role: role ?? 'anonymous' }
}
