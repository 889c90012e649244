import { createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'
import { CONSTRAINT_DEFINITIONS_SQL } from '#databases/drivers/postgres/catalogue/constraints.ts'
import {
  buildDeclaredTypes,
  DECLARED_TYPES_SQL,
  type DeclaredRow,
} from '#databases/drivers/postgres/catalogue/declared-types.ts'
import { indexesSql } from '#databases/drivers/postgres/catalogue/indexes.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/query-errors.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { createSql } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { fail } from '#databases/failures.ts'
import type { ConstraintDefinition, Index, IndexName } from '#databases/plan/catalogue.ts'
import { Failure } from '#kernel/errors.ts'

type DefinitionLimits = {
  readonly maxConnections: number
  readonly maxWaiting: number
  readonly connectTimeout: number
}

/**
 * Definitions that the server writes under locks on their tables: a lock of another session delays them, at most for LIMITED_LOCKS, and
 * they leave connections free for requests that need none of these tables.
 */
export function createDefinitionReader({
  maxConnections,
  maxWaiting,
  connectTimeout,
}: DefinitionLimits): ReadDefinitions {
  const places = createConcurrencyLimit({
    places: Math.max(1, Math.min(AT_ONCE, maxConnections - 1)),
    waiting: maxWaiting,
    patience: connectTimeout,
  })
  return async (read) => {
    const release = await places.acquire()
    try {
      return await repeated(read)
    } catch (error) {
      throw error instanceof Failure && codeOf(error.cause) === LOCK_NOT_AVAILABLE ? locked(error) : error
    } finally {
      release()
    }
  }
}

/** Runs a statement with LIMITED_LOCKS. */
export type ReadDefinitions = (read: () => Promise<unknown>) => Promise<unknown>

export const createDefinitions = ({ value, systemValue }: Runner, read: ReadDefinitions) => ({
  indexes: async (only?: IndexName) => (await read(() => value(indexesSql(only)))) as readonly Index[], // as the statement builds it
  constraintDefinitions: async () =>
    (await read(() => value(createSql(CONSTRAINT_DEFINITIONS_SQL)))) as readonly ConstraintDefinition[], // as the statement builds it
  declaredTypes: async () =>
    buildDeclaredTypes((await read(() => systemValue(createSql(DECLARED_TYPES_SQL)))) as DeclaredRow), // as the statement builds it
})

const AT_ONCE = 2
const LOCK_NOT_AVAILABLE = '55P03'

const locked = (cause: Failure) =>
  fail('object_busy', {
    message: 'A table is locked by another session, so its definitions cannot be read',
    cause,
    headers: { 'retry-after': '5' },
  })

/** Does the work again while it fails because an object was dropped meanwhile. A failed attempt must leave nothing. */
export async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let left = 3; ; left--)
    try {
      return await work()
    } catch (error) {
      const code = codeOf(error instanceof Failure ? error.cause : error)
      if (left === 0 || code !== INTERNAL_ERROR) throw error
    }
}

/**
 * The server fails with an internal error when an object is dropped while a statement looks it up by its number. The next statement does
 * not see the object.
 */
const INTERNAL_ERROR = 'XX000'
