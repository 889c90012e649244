import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { TO } from '../admin/permissions.ts'
import type { AuthAccess } from '../door/access.ts'
import { auditEvents } from './audit.ts'

const AuditEvent = Type.Object(
  {
    id: Id,
    occurredAt: Timestamp,
    actorId: Type.String({
      description:
        'The id of a user, `key:` and the id of an API key, `admin-key`, `cli`, `system` or `anonymous`',
    }),
    onBehalfOf: Nullable(
      Type.String({ format: 'uuid', description: 'The user whom the actor impersonated' }),
    ),
    action: Type.String({ examples: ['user.banned'] }),
    targetType: Nullable(Type.String({ examples: ['user'] })),
    targetId: Nullable(Type.String()),
    clientName: Nullable(Type.String({ description: 'A client of the gateway' })),
    organizationId: Nullable(Id),
    ipAddress: Nullable(Type.String({ description: 'Null after 90 days, as userAgent' })),
    userAgent: Nullable(Type.String()),
    requestId: Nullable(Type.String()),
    outcome: Type.Unsafe<string>({ type: 'string', enum: ['success', 'failure'] }),
    count: Type.Integer({
      description:
        'Of the things that ended; of a failure, the failures in the minute that begins at occurredAt',
    }),
    details: Type.Unsafe<unknown>({ type: 'object', additionalProperties: true, description: 'More ids' }),
  },
  named('AuditEvent'),
)

const Time = Type.String({ maxLength: 64, examples: ['2026-01-31T12:00:00Z'] })

export function auditRoutes(app: App, kernel: Kernel, access: AuthAccess): void {
  app.route({
    method: 'GET',
    url: '/admin/list-audit-events',
    config: { access: access.admin(TO.LIST_AUDIT) },
    schema: {
      summary: 'List the audit trail, newest first',
      querystring: Type.Object({
        actorId: Type.Optional(Type.String({ maxLength: 64 })),
        targetId: Type.Optional(Type.String({ maxLength: 200, description: 'For example the id of a user' })),
        action: Type.Optional(Type.String({ maxLength: 64, examples: ['user.banned'] })),
        organizationId: Type.Optional(Type.String({ format: 'uuid', description: 'What was done in it' })),
        from: Type.Optional(Time),
        to: Type.Optional(Type.String({ maxLength: 64, description: 'Exclusive' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
        cursor: Type.Optional(
          Type.String({
            format: 'uuid',
            description: '`nextCursor` of the page before, with the same filters',
          }),
        ),
      }),
      response: {
        200: Type.Object({
          events: Type.Array(AuditEvent),
          nextCursor: Nullable(Type.String({ description: 'Null on the last page' })),
        }),
      },
    },
    handler: ({ query }) => auditEvents(kernel, query),
  })
}
