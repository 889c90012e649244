import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Db } from '#kernel/db/connect.ts'
import type { PublicRouteTable } from '#kernel/db/tables.ts'
import type { Page } from '../pagination.ts'

export type PublicRoute = Selectable<PublicRouteTable>

export const ROUTE_KEY_CONSTRAINT = 'public_route_route_key_key'

export function insertRoute(db: Db, route: Insertable<PublicRouteTable>): Promise<PublicRoute> {
  return db.insertInto('publicRoute').values(route).returningAll().executeTakeFirstOrThrow()
}

export function findRoute(db: Db, routeKey: string): Promise<PublicRoute | undefined> {
  return db.selectFrom('publicRoute').selectAll().where('routeKey', '=', routeKey).executeTakeFirst()
}

/** Other changes of the route wait until the transaction ends. */
export function lockRoute(db: Db, routeKey: string): Promise<PublicRoute | undefined> {
  return db
    .selectFrom('publicRoute')
    .selectAll()
    .where('routeKey', '=', routeKey)
    .forUpdate()
    .executeTakeFirst()
}

export type RouteFilter = {
  readonly clientName?: string | undefined
  readonly isActive?: boolean | undefined
  /** A part of the key or of the table. */
  readonly search?: string | undefined
}

const matching = (db: Db, { clientName, isActive, search }: RouteFilter) =>
  db
    .selectFrom('publicRoute')
    .$if(clientName !== undefined, (routes) => routes.where('clientName', '=', clientName ?? ''))
    .$if(isActive !== undefined, (routes) => routes.where('isActive', '=', isActive ?? true))
    .$if(search !== undefined, (routes) =>
      routes.where(
        sql<boolean>`position(lower(${search}) in lower(route_key || E'\\n' || coalesce(table_name, ''))) > 0`,
      ),
    )

export function listRoutes(db: Db, filter: RouteFilter & Page): Promise<PublicRoute[]> {
  const { limit, offset } = filter
  return matching(db, filter).selectAll().orderBy('routeKey').limit(limit).offset(offset).execute()
}

export async function countRoutes(db: Db, filter: RouteFilter): Promise<number> {
  const { count } = await matching(db, filter)
    .select((of) => of.fn.countAll<string>().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The source of a route: a table, an SQL text, or both. */
export type RouteSource = Pick<PublicRoute, 'clientName' | 'tableName' | 'query' | 'allowedOps'>

export const listRouteSources = (db: Db): Promise<readonly RouteSource[]> =>
  db.selectFrom('publicRoute').select(['clientName', 'tableName', 'query', 'allowedOps']).execute()

export function updateRoute(db: Db, id: string, change: Updateable<PublicRouteTable>): Promise<PublicRoute> {
  return db
    .updateTable('publicRoute')
    .set(change)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

export function deleteRoute(db: Db, routeKey: string): Promise<PublicRoute | undefined> {
  return db.deleteFrom('publicRoute').where('routeKey', '=', routeKey).returningAll().executeTakeFirst()
}

/** Closes the routes of a client. */
export async function closeRoutesOf(db: Db, clientName: string, now: Date): Promise<void> {
  await db
    .updateTable('publicRoute')
    .set({ isActive: false, updatedAt: now })
    .where('clientName', '=', clientName)
    .where('isActive', '=', true)
    .execute()
}
