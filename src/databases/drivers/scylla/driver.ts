import { createCatalogueCache } from '#databases/drivers/catalogue-cache.ts'
import { createConcurrencyLimit } from '#databases/drivers/concurrency-limit.ts'
import type { Driver, Presence, SqlRequest, SqlResult } from '#databases/drivers/driver.ts'
import { createPlanner } from '#databases/drivers/planner.ts'
import { requirePresence } from '#databases/drivers/presence.ts'
import { runCql } from '#databases/drivers/scylla/caller-cql.ts'
import { readCatalogue, readIndexes } from '#databases/drivers/scylla/catalogue.ts'
import { cannot, requireFewLookUps } from '#databases/drivers/scylla/cql.ts'
import { requireAllowed } from '#databases/drivers/scylla/cql-text.ts'
import { hasMoved } from '#databases/drivers/scylla/errors.ts'
import { countRows, requireExact, selectRows } from '#databases/drivers/scylla/reads.ts'
import { createSession, type Session, type SessionOptions } from '#databases/drivers/scylla/session.ts'
import { deleteRows, insertRows, updateRows } from '#databases/drivers/scylla/writes.ts'
import { fail } from '#databases/failures.ts'
import type { PlanOf } from '#databases/plan/plan.ts'
import type { Rights } from '#databases/plan/rights.ts'
import type { DataRequest } from '#databases/request/request.ts'
import { isSystem } from '#kernel/config/scylla-url.ts'
import { openedOnce } from '#kernel/opened-once.ts'

export type ScyllaOptions = SessionOptions & {
  /** Statements of callers' own CQL (gateway.md 6) that may run at once. */
  readonly sqlConnections: number
  readonly readOnly?: boolean
  /** Rows that an update or delete may name at most (`gateway.max_rows`). */
  readonly maxRows: number
  /** Combinations of the values of `in` lists (`limits.in_product`). */
  readonly inProduct: number
  /** The most bytes of a collected result (`limits.answer`). */
  readonly answerBytes: number
}

/** ScyllaDB and Apache Cassandra, by CQL. Operations that CQL cannot do atomically, or cannot report correctly, are refused. */
export function createScyllaDriver(options: ScyllaOptions): Driver {
  const { keyspace } = options.address
  const session = createSession(options)
  const tables = createCatalogueCache(() => readCatalogue(session, keyspace))
  const { plan, attempt } = createPlanner(tables, hasMoved)
  // Limits long reports, so that they do not delay other statements.
  const reports = createConcurrencyLimit({
    places: options.sqlConnections,
    waiting: options.maxWaiting,
    patience: options.connectTimeout,
  })

  function requireWriting(): void {
    if (options.readOnly) throw fail('read_only')
  }

  /** Clusters of the same name count as one. Then a write invalidates more cached answers than necessary. */
  const identity = openedOnce(async () => {
    const [row] = await session.system<{ cluster_name: string }>('select cluster_name from system.local')
    return `${row?.cluster_name}/${keyspace}`
  }).get

  async function sql(request: SqlRequest): Promise<SqlResult> {
    requireDatabase(request.database, keyspace)
    const { isRead, changesStructure, lookUps } = requireAllowed(
      request.text,
      request.readOnly || (options.readOnly ?? false),
    )
    const asked = keyspaceOf(request.schema) ?? keyspace
    const release = await reports.acquire()
    try {
      return await runCql(session, request, {
        keyspace: asked,
        isWrite: !isRead,
        maxBytes: options.answerBytes,
        lookUps,
        maxLookUps: options.inProduct,
      })
    } finally {
      release()
      if (changesStructure) tables.invalidate()
    }
  }

  return {
    name: 'scylladb',
    // Conditions fail by their types, never by a row.
    keepsGuards: true,
    plan<R extends DataRequest>(request: R, rights: Rights): Promise<PlanOf<R>> {
      if ('columns' in request && request.columns.some(({ kind }) => kind === 'relation'))
        throw cannot('relations')
      return plan(request, rights)
    },
    async select(planned, _on, presence) {
      requireFewLookUps(planned.where, options.inProduct)
      return attempt(planned, (plan) => selectRows(whilePresent(session, presence), plan))
    },
    async stream(planned, presence) {
      requireFewLookUps(planned.where, options.inProduct)
      return attempt(planned, (plan) => selectRows(whilePresent(session, presence), plan))
    },
    async count(planned, _on, presence) {
      requireExact(planned.request.mode)
      requireFewLookUps(planned.where, options.inProduct)
      return attempt(planned, (plan) => countRows(whilePresent(session, presence), plan))
    },
    async insert(planned, _on, presence) {
      requireWriting()
      return attempt(planned, (plan) => insertRows(whilePresent(session, presence), plan))
    },
    async update(planned, _on, presence) {
      requireWriting()
      requireFewLookUps(planned.where, options.inProduct)
      return attempt(planned, (plan) => updateRows(whilePresent(session, presence), plan, options.maxRows))
    },
    async delete(planned, _on, presence) {
      requireWriting()
      requireFewLookUps(planned.where, options.inProduct)
      return attempt(planned, (plan) => deleteRows(whilePresent(session, presence), plan, options.maxRows))
    },
    sql,
    catalogue: tables.fresh,
    indexes: () => readIndexes(session, keyspace),
    invalidate: tables.invalidate,
    identity,
    async probe() {
      const [row] = await session.system<{ release_version: string }>(
        'select release_version from system.local',
      )
      return row?.release_version ?? 'unknown'
    },
    stats: session.stats,
    close: session.close,
  }
}

/** CQL has no cancelling, so a caller who has left is noticed between two statements. */
function whilePresent(session: Session, presence: Presence | undefined): Session {
  if (presence === undefined) return session
  return {
    ...session,
    async page(statement, how) {
      requirePresence(presence)
      return session.page(statement, how)
    },
    async write(statements) {
      requirePresence(presence)
      return session.write(statements)
    },
  }
}

function requireDatabase(asked: string | undefined, keyspace: string): void {
  if (asked === undefined || asked === keyspace) return
  throw fail('invalid_sql', {
    message: 'db_name is not the keyspace of the client',
    hint: 'Name it in schema_name.',
    details: { field: 'db_name' },
  })
}

/** The keyspace of unqualified names; undefined: the client's own. */
function keyspaceOf(schema: string | undefined): string | undefined {
  if (schema === undefined || schema === 'public') return undefined
  if (!/^[A-Za-z][A-Za-z0-9_]{0,47}$/.test(schema))
    throw fail('invalid_identifier', { details: { field: 'schema_name' } })
  if (isSystem(schema))
    throw fail('permission_denied', { message: 'The keyspaces of the server are not for its clients' })
  return schema
}
