import { hash } from 'node:crypto'
import type {
  Batch,
  ChangeFeed,
  FeedProblem,
  LostPosition,
  PolicyReads,
  Position,
} from '#databases/drivers/changes.ts'
import type { RowsResult } from '#databases/drivers/driver.ts'
import type { Management, SchemaStatements } from '#databases/drivers/management.ts'
import {
  hasAllTriggers,
  hasUsableKey,
  isLive,
  isSame,
  isTold,
  isWatched,
  NOTED_TABLES_SQL,
  type NotedTable,
  nameOf,
} from '#databases/drivers/postgres/changes/noted-tables.ts'
import type { ReadsOfPolicies } from '#databases/drivers/postgres/changes/policy-reads.ts'
import { formatPosition, parsePosition } from '#databases/drivers/postgres/changes/position.ts'
import { prune } from '#databases/drivers/postgres/changes/prune.ts'
import {
  BEGIN_EPOCH_SQL,
  changesSql,
  momentSql,
  type Seen,
  type SeenChanges,
  tableChanges,
} from '#databases/drivers/postgres/changes/read-changes.ts'
import { rowValues } from '#databases/drivers/postgres/changes/row-values.ts'
import { CLOSE_FEED, CREATE_STORAGE } from '#databases/drivers/postgres/changes/storage.ts'
import { createStructures } from '#databases/drivers/postgres/changes/structures.ts'
import {
  requireOwnFeed,
  triggerStatements,
  type Wanted,
} from '#databases/drivers/postgres/changes/triggers.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { requireUnreserved } from '#databases/drivers/postgres/sql/ddl/names.ts'
import { bind, createSql, type SqlBuilder } from '#databases/drivers/postgres/sql/sql-builder.ts'
import { fail } from '#databases/failures.ts'
import type { ReadRequest, TableName } from '#databases/request/request.ts'
import { Failure } from '#kernel/errors.ts'

/** Milliseconds after a table that was locked. */
const PAUSE = 60_000
/** Milliseconds that a change waits for a lock meanwhile. */
const IMPATIENT = 10

type FeedParts = {
  readonly runner: Runner
  readonly run: Management['run']
  readonly identity: () => Promise<string | undefined>
  readonly readsOf: ReadsOfPolicies
  /** As the client's own role. */
  readonly readRows: (request: ReadRequest) => Promise<RowsResult>
  /** The structure may be another one than the driver knows: changes past the gateway are found here alone. */
  readonly structureChanged: () => void
}

export function createChangeFeed(parts: FeedParts): ChangeFeed {
  const { runner, run, identity, readsOf, readRows } = parts
  const structures = createStructures()
  /** As it was seen last. */
  let structure: string | undefined
  /** When a table was locked for longer than a change of it waits. */
  let refusedAt = Number.NEGATIVE_INFINITY

  async function notedTables(asked: readonly TableName[] = []): Promise<readonly NotedTable[]> {
    const sql = createSql(NOTED_TABLES_SQL)
    bind(sql, JSON.stringify(asked))
    return (await runner.systemValue(sql)) as readonly NotedTable[] // as the statement builds it
  }

  async function enable(table: TableName): Promise<SchemaStatements> {
    const noted = await notedTables([table])
    const found = noted.find((one) => isSame(one, table))
    if (found === undefined) throw fail('table_not_found')
    requireKey(found)
    return statementsFor([found, ...noted.filter((one) => isLive(one) && one !== found)])
  }

  async function disable(table: TableName): Promise<SchemaStatements> {
    const noted = await notedTables()
    const rest = noted.filter((one) => isLive(one) && !isSame(one, table))
    return statementsFor(
      rest,
      noted.filter((one) => isSame(one, table) || isWatched(one)),
    )
  }

  /**
   * Watches the tables that policies of live ones read. Of `others`, those that they do not read are noted no more: not of all, since another
   * client of the database may have policies for other roles.
   */
  async function statementsFor(
    live: readonly NotedTable[],
    others: readonly NotedTable[] = [],
  ): Promise<SchemaStatements> {
    const isOf = (tables: readonly NotedTable[]) => (one: NotedTable) =>
      tables.some(({ oid }) => oid === one.oid)
    const reads = await Promise.all(live.map((one) => readsOf(nameOf(one))))
    const names = reads.flatMap((one) => (one === 'not_live' ? [] : one.tables))
    const noted = await notedTables(names)
    const isRead = (one: NotedTable) => names.some((name) => isSame(one, name)) && !isOf(live)(one)
    const read = noted.filter((one) => isRead(one) && !one.isUntold)
    const off = others.filter((one) => !isOf([...live, ...read])(one))
    return triggerStatements([
      ...live.map((one): Wanted => ({ noted: one, key: one.key })),
      ...read.map((one): Wanted => ({ noted: one, key: [] })),
      ...off.map((one): Wanted => ({ noted: one, key: undefined })),
    ])
  }

  async function policies(table: TableName): Promise<PolicyReads | 'not_live'> {
    const reads = await readsOf(table)
    if (reads === 'not_live' || reads.tables.length === 0) return reads
    const noted = await notedTables(reads.tables)
    if (noted.some((one) => one.isUntold && reads.tables.some((name) => isSame(one, name)))) return 'not_live'
    const isNoted = (name: TableName) =>
      noted.some((one) => isSame(one, name) && (isLive(one) || isWatched(one)))
    if (!reads.tables.every(isNoted)) await watch(noted.filter(isLive))
    return reads
  }

  /** Each stream that begins tries it, and writers wait behind it: so it waits for a lock of another session once in a while, and else not. */
  async function watch(live: readonly NotedTable[]): Promise<void> {
    const change = await statementsFor(live)
    const isPatient = performance.now() - refusedAt >= PAUSE
    try {
      await make(isPatient ? change : { ...change, lockTimeout: IMPATIENT })
    } catch (error) {
      if (isPatient && error instanceof Failure && error.code === 'object_busy') refusedAt = performance.now()
      throw error
    }
  }

  async function make({ statements, ...conditions }: SchemaStatements): Promise<void> {
    if (statements.length > 0) await run(statements, conditions)
  }

  async function look<S extends Seen>(sql: SqlBuilder): Promise<S | undefined> {
    try {
      return (await runner.systemValue(sql)) as S // as the statement builds it
    } catch (error) {
      if (error instanceof Failure && error.code === 'table_not_found') return undefined
      throw error
    }
  }

  /** A position of another database, or of before a restore, has another one. */
  async function epochOf({ epoch, origin }: Seen): Promise<string> {
    return hash('sha256', JSON.stringify([await identity(), epoch, origin])).slice(0, 32)
  }

  function remember({ tables }: Seen): string {
    const digest = structures.remember(tables)
    // Also when it is seen for the first time: what the driver knows may be of before.
    if (digest !== structure) parts.structureChanged()
    structure = digest
    return digest
  }

  async function position(renews = true): Promise<Position> {
    const seen = (await look(momentSql())) ?? (await begin())
    const broken = renews ? seen.tables.filter(hasOtherKey) : []
    for (const one of broken) await renewTriggers(one, seen.tables.filter(isLive))
    if (seen.epoch === null) await runner.systemValue(createSql(BEGIN_EPOCH_SQL))
    if (seen.epoch === null || broken.length > 0) return position(false)
    return formatPosition(await epochOf(seen), remember(seen), seen.snapshot)
  }

  async function renew(table: TableName): Promise<void> {
    const noted = await notedTables([table])
    const broken = noted.find((one) => isSame(one, table) && hasOtherKey(one))
    if (broken !== undefined) await renewTriggers(broken, noted.filter(isLive))
  }

  async function renewTriggers(broken: NotedTable, live: readonly NotedTable[]): Promise<void> {
    // It may be locked, or belong to another role by now: it is not live then, and holds up no other table.
    await statementsFor([...live, broken])
      .then(make)
      .catch(() => {})
  }

  /** Makes the tables of the feed again where something has dropped them, as a restore does. */
  async function begin(): Promise<Seen> {
    if (!(await notedTables()).some(isLive)) throw fail('not_live')
    await run([...CREATE_STORAGE, CLOSE_FEED], { check: requireOwnFeed, verify: requireOwnFeed })
    const seen = await look(momentSql())
    if (seen === undefined) throw fail('not_live')
    return seen
  }

  async function read(after: Position): Promise<Batch | LostPosition> {
    const boundary = parsePosition(after)
    if (boundary === undefined) return { lost: 'epoch' }
    const seen = await look<SeenChanges>(changesSql(boundary))
    if (seen === undefined || seen.epoch === null || seen.isAhead) return { lost: 'epoch' }
    const epoch = await epochOf(seen)
    if (epoch !== boundary.epoch) return { lost: 'epoch' }
    if (seen.isPruned) return { lost: 'too_old' }
    const position = formatPosition(epoch, remember(seen), seen.snapshot)
    const changed = structures.changedSince(boundary.structure, seen.tables)
    if (changed === undefined) return { lost: 'table_changed' }
    const isUnchanged = (name: TableName) => !changed.some(({ table }) => isSame(table, name))
    const tables = tableChanges(seen).filter(({ table }) => isUnchanged(table))
    const isRestructured = changed.length > 0
    return { position, tables: [...changed, ...tables], isRestructured, lagSeconds: Number(seen.lag) }
  }

  return {
    enable,
    disable,
    tables: async () =>
      (await notedTables())
        .filter(isLive)
        .map((one) => ({ table: nameOf(one), key: one.key.map(({ name }) => name) })),
    renew,
    policies,
    values: (table, keys, columns) => rowValues(readRows, table, keys, columns),
    position: () => position(),
    read,
    prune: (keep) => prune(runner, keep),
    problems: async () => (await notedTables()).flatMap(problemOf),
  }
}

/** The columns of its key have changed, so that its triggers note no key. */
const hasOtherKey = (one: NotedTable): boolean =>
  hasUsableKey(one) && isTold(one) && !isLive(one) && !isWatched(one)

function problemOf(noted: NotedTable): readonly FeedProblem[] {
  const table = nameOf(noted)
  if (isLive(noted) || isWatched(noted))
    return noted.isParent ? [{ table, why: CHILDREN, isBroken: false }] : []
  if (noted.isUntold) return [{ table, why: UNTOLD, isBroken: true }]
  const again = `PUT /management/tables/${noted.table}/realtime { enabled: true }`
  const why = hasAllTriggers(noted)
    ? `has another primary key than its triggers of live rows: ${again}`
    : `has triggers of live rows that are disabled or missing: ${again}`
  return [{ table, why, isBroken: true }]
}

const CHILDREN =
  'has partitions or child tables, and is live for writes through itself: those to a partition or child by its own name are not told'

const UNTOLD =
  'has triggers of live rows, but is unlogged, a partition or a child table: writes to its parent fire no trigger of it, and a crash empties it'

function requireKey({ schema, table, kind, key, isUntold }: NotedTable): void {
  requireUnreserved(schema, table)
  const details = { schema_name: schema, table_name: table }
  if (kind !== 'r' && kind !== 'p')
    throw fail('no_primary_key', { message: `${schema}.${table} is no table`, details })
  if (key.length === 0) throw fail('no_primary_key', { details })
  if (isUntold)
    throw fail('not_live', {
      message: `${schema}.${table} is unlogged, a partition or a child table: not all writes of its rows are told`,
      hint: 'Make the parent of a partition live',
      details,
    })
  const odd = key.find(({ isPlain }) => !isPlain)
  if (odd !== undefined)
    throw fail('no_primary_key', {
      message: `Column ${odd.name} of the primary key is an array, a composite, a range, a name of an object or money, and live rows need keys without these`,
      details,
    })
}
