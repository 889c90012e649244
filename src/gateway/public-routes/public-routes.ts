import type { Clients } from '#databases/clients/clients.ts'
import type { TableUse } from '#databases/drivers/management.ts'
import type { TableName } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import { actAsOperator } from '#identity/act.ts'
import { tell, tellChange } from '#identity/tell.ts'
import { changedFields } from '#kernel/audit/changed-fields.ts'
import { creatorOf } from '#kernel/audit/creator.ts'
import { isConflict } from '#kernel/db/conflicts.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { expectRights, pastPolicies, rightsToTable } from '../caller/expected-rights.ts'
import { fail } from '../errors.ts'
import { requireClient } from '../existing-clients.ts'
import { storingMetadata } from '../metadata.ts'
import type { Page } from '../pagination.ts'
import type { MayHave } from '../same-database.ts'
import { mayDelete, mentions } from '../table-use.ts'
import { columnsOf, type NewFacts, newColumns, type Op, type RouteFacts, requireSound } from './definition.ts'
import {
  closeRoutesOf,
  countRoutes,
  deleteRoute,
  findRoute,
  insertRoute,
  listRouteSources,
  listRoutes,
  lockRoute,
  type PublicRoute,
  ROUTE_KEY_CONSTRAINT,
  type RouteFilter,
  type RouteSource,
  updateRoute,
} from './store.ts'

type NewRoute = NewFacts & { readonly route_key: string }

export async function createRoute(kernel: Kernel, clients: Clients, asked: NewRoute): Promise<PublicRoute> {
  const columns = newColumns(asked)
  await requireSound(kernel, clients, columns, asked)
  const now = kernel.now()
  const route = {
    ...columns,
    id: uuidv7(now, kernel.random),
    routeKey: asked.route_key,
    createdAt: now,
    createdBy: creatorOf(kernel),
    updatedAt: now,
  }
  try {
    return await storingMetadata(() =>
      actAsOperator(kernel, async (kernel) => {
        await requireClient(kernel, clients, route.clientName)
        await expectToHold(kernel, clients, route)
        const inserted = await insertRoute(kernel.db, route)
        await tell(kernel, 'public_route.created', actOf(inserted))
        return inserted
      }),
    )
  } catch (error) {
    if (isConflict(error, ROUTE_KEY_CONSTRAINT)) throw fail('public_route_exists')
    throw error
  }
}

/** Changes a route. When it resolves, every process uses the new record, also for bodies that are still arriving. */
export async function changeRoute(
  kernel: Kernel,
  clients: Clients,
  routeKey: string,
  facts: RouteFacts,
): Promise<PublicRoute> {
  const change = columnsOf(facts)
  return actAsOperator(kernel, async (kernel) => {
    const before = await lockRoute(kernel.db, routeKey)
    if (before === undefined) throw fail('public_route_not_found')
    const changed = { ...before, ...change }
    await requireSound(kernel, clients, changed, facts)
    await requireClient(kernel, clients, changed.clientName)
    if (!isClosing(facts)) for (const record of [before, changed]) await expectToHold(kernel, clients, record)
    const route = await storingMetadata(() =>
      updateRoute(kernel.db, before.id, { ...change, updatedAt: kernel.now() }),
    )
    const fields = changedFields<object>(before, route, change)
    const act = { ...actOf(before), details: { ...actOf(before).details, fields } }
    await tellChange(kernel, 'public_route.updated', fields, act)
    return route
  })
}

/** The route opens this to its callers. Where it leads, also by another route of its key, decides who gets what they send. */
async function expectToHold(
  kernel: Kernel,
  clients: Clients,
  {
    clientName,
    allowedOps,
    tableName,
    query,
    runAs,
  }: Pick<PublicRoute, 'clientName' | 'allowedOps' | 'tableName' | 'query' | 'runAs'>,
): Promise<void> {
  const opened = Object.entries(ACTIONS_OF).filter(([op]) => allowedOps.includes(op))
  const actions = ACTIONS.filter((action) => opened.some(([, needed]) => needed.includes(action)))
  // A later change may offer it, by someone who has not written it.
  const hasSql = query !== null || allowedOps.includes('query')
  const rights = [
    ...rightsToTable(tableName === null ? null : readTable({ table_name: tableName }), actions),
    ...(hasSql ? ['gateway.query'] : []),
  ]
  // SQL can take the client's own role again, whoever calls it.
  const passesPolicies = hasSql || runAs === 'owner'
  await expectRights(
    kernel,
    clientName,
    passesPolicies ? await pastPolicies(clients, clientName, rights) : rights,
  )
}

const ACTIONS = ['read', 'write', 'delete'] as const
/** A write answers rows, and its conditions look at columns. */
const ACTIONS_OF: Readonly<Record<Op, readonly (typeof ACTIONS)[number][]>> = {
  query: [],
  fetch: ['read'],
  insert: ['read', 'write'],
  update: ['read', 'write'],
  delete: ['read', 'delete'],
  subscribe: ['read'],
}

const isClosing = (facts: RouteFacts): boolean => facts.is_active === false && Object.keys(facts).length === 1

/** Removes a route. When it resolves, no process serves it. */
export async function removeRoute(kernel: Kernel, clients: Clients, routeKey: string): Promise<void> {
  await actAsOperator(kernel, async (kernel) => {
    const removed = await deleteRoute(kernel.db, routeKey)
    if (removed === undefined) throw fail('public_route_not_found')
    await expectToHold(kernel, clients, removed)
    await tell(kernel, 'public_route.removed', actOf(removed))
  })
}

/**
 * Closes the routes of a deleted client, so that they do not open a new client of the same name, which may be a different database. An
 * operator can activate them again.
 */
export const closeRoutes = ({ db, now }: Pick<Kernel, 'db' | 'now'>, clientName: string): Promise<void> =>
  closeRoutesOf(db, clientName, now())

/** Whether routes lead to a client of this name, whether there is one or not. */
export const isNamedByRoutes = async ({ db }: Pick<Kernel, 'db'>, clientName: string): Promise<boolean> =>
  (await countRoutes(db, { clientName })) > 0

/**
 * Routes on this database that name one of these tables, and whether one of them may delete its rows. Also routes that are closed: an
 * operator can activate them.
 */
export async function routesNaming(
  { db }: Pick<Kernel, 'db'>,
  mayHave: MayHave,
  tables: readonly TableName[],
): Promise<TableUse> {
  const naming = (await listRouteSources(db)).filter((route) => tables.some((table) => names(route, table)))
  const isOfDatabase = await Promise.all(naming.map(({ clientName }) => mayHave(clientName)))
  const found = naming.filter((_, index) => isOfDatabase[index])
  return {
    isNamed: found.length > 0,
    isInCode: found.length > 0,
    deletes: found.some(({ allowedOps, query }) => allowedOps.includes('delete') || mayDelete(query ?? '')),
  }
}

function names({ tableName, query }: RouteSource, { schema, table }: TableName): boolean {
  const fixed = tableName === null ? undefined : readTable({ table_name: tableName })
  return (fixed?.schema === schema && fixed.table === table) || mentions(query ?? '', table)
}

export async function pageOfRoutes(
  { db }: Kernel,
  filter: RouteFilter & Page,
): Promise<{ readonly routes: readonly PublicRoute[]; readonly total: number }> {
  const [routes, total] = await Promise.all([listRoutes(db, filter), countRoutes(db, filter)])
  return { routes, total }
}

export async function existingRoute({ db }: Kernel, routeKey: string): Promise<PublicRoute> {
  const found = await findRoute(db, routeKey)
  if (found === undefined) throw fail('public_route_not_found')
  return found
}

const actOf = ({ id, clientName, routeKey }: PublicRoute) => ({
  targetId: id,
  clientName,
  details: { route_key: routeKey },
})
