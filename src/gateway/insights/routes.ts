import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, OneOf, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Figures } from '#kernel/metrics.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { success, successOf } from '../envelope.ts'
import { activityOf, STATEMENT_ORDERS, settingsOf, slowestStatements } from './insights.ts'

type Finding = { readonly subject: string; readonly ok: boolean; readonly says: string }

export type InsightParts = {
  /** Figures of all processes of this service on this machine. */
  readonly figures: () => Promise<readonly Figures[]>
  /** The findings of `gatehouse doctor`, in bounded time. Concurrent calls share one run. */
  readonly doctor: () => Promise<readonly Finding[]>
}

const Doctor = Type.Object(
  {
    healthy: Type.Boolean({ description: 'Whether no finding is a problem' }),
    findings: Type.Array(
      Type.Object(
        {
          subject: Type.String({ examples: ['mail'] }),
          ok: Type.Boolean(),
          says: Type.String({ description: 'What is the case, and of a problem what to do' }),
        },
        named('Finding'),
      ),
    ),
  },
  named('DoctorResult'),
)

const Settings = Type.Object(
  {
    settings: Type.Array(
      Type.Object(
        {
          setting: Type.String({ examples: ['session.expires_in'] }),
          value: Nullable(
            Type.String({ description: 'As in the file; secrets are masked. Null when it is absent' }),
          ),
          default: Nullable(Type.String({ description: 'Null without a fixed one' })),
          absent: Nullable(Type.String({ description: 'The effect when it is absent' })),
          source: Type.String({
            description: '`default`, or a line of the file, a variable or an option',
            examples: ['gatehouse.yaml:12', 'SERVICE_SESSION__EXPIRES_IN', '--port'],
          }),
          is_secret: Type.Boolean(),
        },
        named('Setting'),
      ),
    ),
  },
  named('Settings'),
)

const Responses = Type.Object(
  {
    '2xx': Type.Integer(),
    '3xx': Type.Integer(),
    '4xx': Type.Integer(),
    '5xx': Type.Integer(),
  },
  named('ResponseCounts'),
)
const COUNTS = {
  requests: Type.Object({ auth: Responses, gateway: Responses }, named('RequestCounts')),
  sign_ins: Type.Object({ succeeded: Type.Integer(), failed: Type.Integer() }, named('SignInCounts')),
  deliveries: Type.Object(
    {
      succeeded: Type.Integer(),
      failed: Type.Integer({ description: 'For good' }),
      retried: Type.Integer({ description: 'Failed attempts that are made again' }),
    },
    named('DeliveryCounts'),
  ),
  jobs: Type.Object(
    { done: Type.Integer(), failed: Type.Integer({ description: 'Attempts' }) },
    named('JobCounts'),
  ),
}
const Activity = Type.Object(
  {
    from: Timestamp,
    to: Timestamp,
    total: Type.Object(COUNTS, named('ActivityCounts')),
    minutes: Type.Array(Type.Object({ at: Timestamp, ...COUNTS }, named('ActivityOfMinute')), {
      description: 'Oldest first; the last one has not ended',
    }),
  },
  named('Activity'),
)

const Milliseconds = Type.Number({ description: 'Milliseconds' })
const Statements = Type.Object(
  {
    since: Timestamp,
    statements: Type.Array(
      Type.Object(
        {
          client: Type.String(),
          operation: Type.String({
            description: '`fetch`, `csv`, `stream`, `export`, `count`, `insert`, `update` or `delete`',
          }),
          table: Type.String({ examples: ['public.orders'] }),
          conditions: Type.String({
            description: 'Columns and operators without values; empty without conditions',
            examples: ['status eq and (total gt or total is)'],
          }),
          order: Type.String({ examples: ['created_at desc, id'] }),
          relations: Type.String({ description: 'Tables that are read with it', examples: ['items'] }),
          count: Type.Integer(),
          p50_ms: Milliseconds,
          p95_ms: Milliseconds,
          max_ms: Milliseconds,
          total_ms: Milliseconds,
        },
        named('StatementTimes'),
      ),
    ),
    others: Type.Object(
      { count: Type.Integer(), total_ms: Milliseconds },
      { ...named('OtherStatements'), description: 'Statements of plans that are not kept one by one' },
    ),
  },
  named('SlowestStatements'),
)

/** Milliseconds. The checks end themselves before that. */
const DOCTOR_TIMEOUT = 60_000

export function insightRoutes(app: App, kernel: Kernel, access: GatewayAccess, parts: InsightParts): void {
  app.route({
    method: 'GET',
    url: '/admin/doctor',
    config: { access: access.operator('settings'), timeout: DOCTOR_TIMEOUT },
    schema: {
      operationId: 'getFindings',
      summary: 'Check the service, as the command doctor does',
      description:
        'One run at a time: who asks meanwhile gets its findings. What takes too long is a finding.',
      response: { 200: successOf(Doctor) },
    },
    handler: async () => {
      const findings = [...(await parts.doctor())]
      return success('The service was checked', { healthy: findings.every(({ ok }) => ok), findings })
    },
  })
  app.route({
    method: 'GET',
    url: '/admin/settings',
    config: { access: access.operator('settings') },
    schema: {
      operationId: 'listSettings',
      summary: 'List every setting with its value, default and source',
      response: { 200: successOf(Settings) },
    },
    handler: async () => success('Settings in force', { settings: settingsOf(kernel) }),
  })
  app.route({
    method: 'GET',
    url: '/admin/activity',
    config: { access: access.operator('metrics') },
    schema: {
      operationId: 'getActivity',
      summary: 'Count requests, sign-ins, deliveries and jobs of the last hour, by minute',
      description: 'Of the processes on this machine, since they began. It is kept in memory.',
      response: { 200: successOf(Activity) },
    },
    handler: async () => success('Activity of the last hour', activityOf(kernel, await parts.figures())),
  })
  app.route({
    method: 'GET',
    url: '/admin/statements',
    config: { access: access.operator('metrics') },
    schema: {
      operationId: 'listSlowestStatements',
      summary: 'List the slowest statements on clients, by plan',
      description:
        'Statements of data operations, pipelines and public routes, with the time until the answer begins; SQL and functions of callers ' +
        'are not among them. Of the processes on this machine, since they began. It is kept in memory.',
      querystring: Type.Object({
        sort: Type.Optional(OneOf(STATEMENT_ORDERS, { default: 'p95' })),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 50 })),
        client_name: Type.Optional(Type.String({ maxLength: 64, description: 'Only this client' })),
      }),
      response: { 200: successOf(Statements) },
    },
    handler: async ({ query }) =>
      success('Slowest statements', slowestStatements(kernel, await parts.figures(), query)),
  })
}
