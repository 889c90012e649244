import type { Key, PolicyReads } from '#databases/drivers/changes.ts'
import type { Persona, RowsResult } from '#databases/drivers/driver.ts'
import { eachRow } from '#databases/drivers/json-rows.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import { EVERY_ROW, keyCondition } from '#databases/request/key-condition.ts'
import type { ReadRequest, TableName } from '#databases/request/request.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { rowBatches } from '../bulk/streamed-rows.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { OWNER } from '../caller/caller-role.ts'
import { fail } from '../errors.ts'
import { actingAs, type Prepared, prepare, prepareAgain } from '../prepare.ts'
import { type KeyedRow, keyedRow, keyTerms } from './keyed-row.ts'
import { dependsOnTime } from './time-conditions.ts'

/** One table of a stream, as the body asks for it. */
export type AskedTable = {
  readonly table_name: string
  readonly schema_name?: string | undefined
  readonly columns?: unknown
  readonly conditions?: unknown
  /** As events call it, for callers who are not told its name. */
  readonly called?: string
}

/** The same, with its names found and its rights granted. */
export type LiveTable = {
  /** As events call it: `orders`, `sales.orders`, or the key of a public route. */
  readonly name: string
  readonly table: TableName
  /** The columns of the primary key, in its order. */
  readonly key: readonly string[]
  /** Claims and tables that decide which rows the caller sees, beside the rows themselves. */
  readonly reads: PolicyReads
  /** Values that `reads.owners` has in the rows that the caller sees, null for none. Undefined: the rows may have others. */
  readonly owners: readonly (string | null)[] | undefined
  /** Equal for callers who see the same rows of the same request, as far as the policies tell. */
  readonly cohort: string
  readonly fetch: Prepared<'fetch'>
}

/** The live tables of a client. */
export type LiveTables = {
  keyOf(table: TableName): Promise<readonly string[] | undefined>
  policies(table: TableName): Promise<PolicyReads | 'not_live'>
}

/** Finds every name and requires every right of a fetch. Throws the failure of a table that cannot be followed. */
export async function openTable(
  kernel: Kernel,
  caller: GatewayCaller,
  { table_name, schema_name, columns, conditions, called }: AskedTable,
  live: LiveTables,
): Promise<LiveTable> {
  const fetch = await prepare(kernel, caller, { table_name, schema_name, columns, conditions }, 'fetch')
  const { schema, name: own } = fetch.plan.table
  const table = { schema, table: own }
  const name = called ?? (schema === 'public' ? own : `${schema}.${own}`)
  const details = { table: name }
  if (fetch.plan.output.some(({ kind }) => kind === 'relation'))
    throw fail('not_live', {
      message: 'Relations are not live',
      hint: 'Follow the related table as a table of its own',
      details: { ...details, field: 'columns' },
    })
  if (fetch.plan.where !== undefined && dependsOnTime(fetch.plan.where))
    throw fail('not_live', {
      message: 'A condition depends on the time, by which rows come and go without a change',
      hint: 'Give the time itself in place of now, today, tomorrow and yesterday',
      details: { ...details, field: 'conditions' },
    })
  const key = await live.keyOf(table)
  if (key === undefined)
    throw fail('not_live', {
      ...(called === undefined && { hint: `PUT /management/tables/${own}/realtime with enabled: true` }),
      details,
    })
  requireOpenKey(caller, key, details)
  // Not by what the catalogue of the fetch knows: policies may have been made past the gateway.
  const reads = await live.policies(table)
  if (reads === 'not_live') throw fail('policy_not_live', { details })
  const persona = reducedPersona(caller, reads)
  const { columns: output, where, scope } = fetch.plan.request
  const cohort = JSON.stringify([name, table, output, where, scope, persona])
  return { name, table, key, reads, owners: ownersOf(caller, reads), cohort, fetch }
}

/** Events tell the key of a row, so that a public route has to open its columns. */
function requireOpenKey(
  { scope }: GatewayCaller,
  key: readonly string[],
  details: Record<string, unknown>,
): void {
  if (scope?.columns === undefined || key.every((name) => scope.columns?.includes(name))) return
  throw fail('not_live', {
    message: 'A stream tells the primary keys of its rows, which this public route does not open',
    hint: 'Its columns need those of the primary key',
    details: { ...details, field: 'columns' },
  })
}

/**
 * The persona with only those claims that the policies read. If a policy read another one in spite of that, it would find none, and not that of
 * another member of the cohort.
 */
function reducedPersona({ persona }: GatewayCaller, { claims }: PolicyReads): Persona | undefined {
  if (persona === undefined) return undefined
  const { role } = persona
  if (claims === 'all') return { role, claims: persona.claims, readOnly: true }
  const known = Object.entries(JSON.parse(persona.claims)).filter(([name]) => claims.includes(name))
  return { role, claims: JSON.stringify(Object.fromEntries(known)), readOnly: true }
}

/** A uuid as the database writes it. Another spelling of it is the same value to a policy. */
const WRITTEN_UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function ownersOf({ persona }: GatewayCaller, { owners }: PolicyReads): LiveTable['owners'] {
  // Policies do not bind the client's own role.
  if (persona === undefined || persona.role === OWNER.role || owners === undefined) return undefined
  const claims: Readonly<Record<string, unknown>> = JSON.parse(persona.claims)
  const values = owners.map(({ claim }) => claims[claim] ?? null)
  const isWritten = (value: unknown): value is string | null =>
    value === null || (typeof value === 'string' && WRITTEN_UUID.test(value))
  return values.every(isWritten) ? values : undefined
}

/** Yields the rows that a fetch of the caller returns now; only their keys with `keysOnly`. `hasMore` is called when there are too many. */
export async function* rowsNow(
  kernel: Kernel,
  caller: GatewayCaller,
  { fetch, key }: LiveTable,
  { keysOnly, hasMore }: { readonly keysOnly: boolean; readonly hasMore: () => void },
): AsyncGenerator<KeyedRow> {
  const { request } = fetch.plan
  const columns = [...(keysOnly ? [] : request.columns), ...keyTerms(key)]
  const page = { limit: kernel.config.gateway.max_rows, offset: 0, open: true }
  const result = await (await prepareAgain({ ...fetch, caller }, { ...request, columns, page })).run()
  yield* keyedRows(result, key)
  if (result.facts().hasMore) hasMore()
}

async function* keyedRows(result: RowsResult, key: readonly string[]): AsyncGenerator<KeyedRow> {
  for await (const batch of rowBatches(result))
    for (const text of eachRow(`[${batch}]`)) yield keyedRow(text, key)
}

/** Rows by their keys. Not whole: there may be more. */
type RowsOfKeys = { readonly rows: ReadonlyMap<string, string>; readonly isWhole: boolean }

/** The rows of these keys that the caller's cohort sees now, by their keys: at least one, if there are any, and no more than `most` characters and the last one. */
export async function rowsByKey(
  caller: GatewayCaller,
  { fetch, key, reads }: LiveTable,
  keys: readonly Key[],
  most: number,
): Promise<RowsOfKeys> {
  const { request } = fetch.plan
  const these = keyCondition(key, keys)
  const where: ReadRequest['where'] =
    request.where === undefined ? these : { kind: 'all', terms: [these, request.where] }
  const columns = [...request.columns, ...keyTerms(key)]
  const page = { limit: EVERY_ROW, offset: 0, open: false }
  const read = await prepareAgain(
    { ...fetch, caller: forAll(caller, reads) },
    { ...request, columns, where, page },
  )
  const rows = new Map<string, string>()
  let size = 0
  for await (const { key: found, row } of keyedRows(await read.run(), key)) {
    rows.set(found, row)
    size += row.length
    if (size > most) return { rows, isWhole: false }
  }
  return { rows, isWhole: true }
}

/** Throws what the database refuses: privileges of the caller's role, and values that do not fit their columns. */
export async function expectReadable(caller: GatewayCaller, { fetch, key }: LiveTable): Promise<void> {
  const { request } = fetch.plan
  const page = { limit: 1, offset: 0, open: false }
  const columns = [...request.columns, ...keyTerms(key)]
  const result = await (await prepareAgain({ ...fetch, caller }, { ...request, columns, page })).run()
  for await (const _ of result.json);
}

/** The caller of readings for all members: they go on when this one leaves. */
function forAll(caller: GatewayCaller, reads: PolicyReads): GatewayCaller {
  const persona = reducedPersona(caller, reads)
  const present = { ...caller, presence: ALWAYS_PRESENT }
  return persona === undefined ? present : actingAs(present, persona)
}

/** The keys of all rows that the caller's cohort sees now. Undefined: too many. */
export async function keysNow(
  kernel: Kernel,
  caller: GatewayCaller,
  live: LiveTable,
): Promise<ReadonlySet<string> | undefined> {
  const keys = new Set<string>()
  let isWhole = true
  const hasMore = () => {
    isWhole = false
  }
  const rows = rowsNow(kernel, forAll(caller, live.reads), live, { keysOnly: true, hasMore })
  for await (const { key } of rows) keys.add(key)
  return isWhole ? keys : undefined
}
