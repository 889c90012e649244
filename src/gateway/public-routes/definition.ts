import type { Clients } from '#databases/clients/clients.ts'
import { requireAbility } from '#databases/drivers/abilities.ts'
import { parseJson } from '#databases/request/json.ts'
import { type RequestOptions, readScope } from '#databases/request/read-request.ts'
import type { Scope } from '#databases/request/request.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { unknownClient } from '../caller/called-client.ts'
import { fail } from '../errors.ts'
import { requestOptionsOf, storedOptionsOf } from '../prepare.ts'
import type { PublicRoute } from './store.ts'

/** Those that a body is sent to. */
export const CALLED_OPS = ['query', 'fetch', 'insert', 'update', 'delete'] as const
export const OPS = [...CALLED_OPS, 'subscribe'] as const
export type Op = (typeof OPS)[number]

/** The parts of a record that an operator sets. */
export type RouteFacts = {
  readonly client_name?: string
  readonly allowed_ops?: readonly Op[]
  readonly table_name?: string | null
  /** In the grammar of a body. */
  readonly conditions?: unknown
  readonly columns?: readonly string[] | null
  readonly query?: string | null
  readonly requires_key?: boolean
  readonly run_as?: 'caller' | 'owner'
  readonly rate_limit?: { readonly requests: number; readonly window_seconds: number } | null
  readonly allowed_origins?: readonly string[] | null
  readonly is_active?: boolean
  readonly metadata?: Readonly<Record<string, unknown>> | null
}

/** The columns that an operator sets. */
type Columns = Omit<PublicRoute, 'id' | 'routeKey' | 'metadata' | 'createdAt' | 'createdBy' | 'updatedAt'> & {
  readonly metadata: string
}

const DEFAULTS = {
  tableName: null,
  conditions: null,
  columns: null,
  query: null,
  requiresKey: true,
  runAs: 'caller',
  requests: 60,
  windowSeconds: 60,
  allowedOrigins: [],
  isActive: true,
  metadata: '{}',
} satisfies Partial<Columns>

/** The columns that the facts set; null restores the default. */
export function columnsOf(facts: RouteFacts): Partial<Columns> {
  const { rate_limit: limit, conditions } = facts
  return {
    ...(facts.client_name !== undefined && { clientName: facts.client_name }),
    ...(facts.allowed_ops !== undefined && { allowedOps: [...new Set(facts.allowed_ops)] }),
    ...(facts.table_name !== undefined && { tableName: facts.table_name }),
    ...(conditions !== undefined && { conditions: isNone(conditions) ? null : JSON.stringify(conditions) }),
    ...(facts.columns !== undefined && { columns: facts.columns && [...new Set(facts.columns)] }),
    ...(facts.query !== undefined && { query: facts.query }),
    ...(facts.requires_key !== undefined && { requiresKey: facts.requires_key }),
    ...(facts.run_as !== undefined && { runAs: facts.run_as }),
    ...(limit !== undefined && {
      requests: limit?.requests ?? DEFAULTS.requests,
      windowSeconds: limit?.window_seconds ?? DEFAULTS.windowSeconds,
    }),
    ...(facts.allowed_origins !== undefined && {
      allowedOrigins: [...new Set(facts.allowed_origins ?? DEFAULTS.allowedOrigins)],
    }),
    ...(facts.is_active !== undefined && { isActive: facts.is_active }),
    ...(facts.metadata !== undefined && { metadata: JSON.stringify(facts.metadata ?? {}) }),
  }
}

const isNone = (conditions: unknown): boolean =>
  conditions === null || (Array.isArray(conditions) && conditions.length === 0)

export type NewFacts = RouteFacts & Required<Pick<RouteFacts, 'client_name' | 'allowed_ops'>>

export const newColumns = (facts: NewFacts): Columns => ({
  ...DEFAULTS,
  clientName: facts.client_name,
  allowedOps: [...new Set(facts.allowed_ops)],
  ...columnsOf(facts),
})

type Definition = Omit<Columns, 'metadata'>

/**
 * Throws a failure for a definition that could not be called, or that would open more than it fixes. The limits hold for conditions that
 * are given now.
 */
export async function requireSound(
  kernel: Kernel,
  clients: Clients,
  route: Definition,
  { conditions }: RouteFacts,
): Promise<void> {
  const { allowedOps, tableName, query, requiresKey } = route
  const client = await clients.find(route.clientName)
  if (client === undefined) throw unknownClient()
  readScopeOf(route, conditions === undefined ? storedOptionsOf(kernel) : requestOptionsOf(kernel))
  if (allowedOps.includes('query') && query === null)
    throw unsound('query', 'The operation query needs the SQL text: a caller never sends SQL.')
  const isFixed = tableName !== null || allowedOps.every((op) => op === 'query')
  if (!requiresKey && !isFixed)
    throw unsound('requires_key', 'Without a key, a route needs a fixed table_name.')
  if (!requiresKey && (await clients.locate(client)).isLogging)
    throw unsound('requires_key', 'The logging client always needs a key.')
  const wrong = route.allowedOrigins.find((origin) => !isOrigin(origin))
  if (wrong !== undefined)
    throw unsound('allowed_origins', 'An origin is https://host, with a port if it has one, or *.')
  if (query !== null) await requireAbility(client.driver, 'fixedSql').check(query)
  if (allowedOps.includes('subscribe')) requireAbility(client.driver, 'changes')
}

const isOrigin = (text: string): boolean =>
  text === '*' || (/^https?:/.test(text) && URL.parse(text)?.origin === text)

const unsound = (field: string, hint: string) => fail('invalid_public_route', { hint, details: { field } })

/** The part of the client that the stored route opens. */
export const scopeOf = (kernel: Kernel, route: Definition): Scope =>
  readScopeOf(route, storedOptionsOf(kernel))

const readScopeOf = (
  { tableName, conditions, columns, allowedOps }: Definition,
  options: RequestOptions,
): Scope =>
  readScope(
    {
      table: tableName ?? undefined,
      conditions: conditions === null ? undefined : parseJson(conditions),
      columns: columns ?? undefined,
      allowsUpdate: allowedOps.includes('update'),
    },
    options,
  )
