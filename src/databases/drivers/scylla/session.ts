import { type Client, types } from 'cassandra-driver'
import type { DriverStats } from '#databases/drivers/driver.ts'
import { type Page, pageOf, wasApplied } from '#databases/drivers/scylla/cells.ts'
import { type ClusterOptions, createCluster } from '#databases/drivers/scylla/cluster.ts'
import { type Parameter, parametersOf } from '#databases/drivers/scylla/library.ts'
import { runUnprepared, type UnpreparedStatements } from '#databases/drivers/scylla/unprepared.ts'
import { bound } from '#databases/drivers/scylla/values.ts'
import { fail } from '#databases/failures.ts'
import type { Json } from '#databases/request/request.ts'

export type SessionOptions = ClusterOptions & {
  /** Milliseconds. */
  readonly statementTimeout: number
}

/** The value of one `?`; undefined leaves the column unchanged. `column` is named by the failure of a value that does not fit. */
export type Binding = { readonly value: Json | undefined; readonly column: string }
export type Statement = { readonly text: string; readonly bindings: readonly Binding[] }

type PageOptions = {
  readonly size: number
  /** Paging state of the previous page. */
  readonly after?: string | undefined
  /** Sees every conditional write that has begun (Paxos). */
  readonly isSerial?: boolean
}

export type Session = {
  page(statement: Statement, options: PageOptions): Promise<Page>
  /** Writes several statements as one; false when a condition failed and nothing was written. */
  write(statements: readonly Statement[]): Promise<boolean>
  /** Types of the parameters. */
  parameters(text: string): Promise<readonly Parameter[]>
  /** Runs unprepared statements of the caller's own text in this keyspace. */
  unprepared<T>(
    keyspace: string,
    isWrite: boolean,
    work: (statements: UnpreparedStatements) => Promise<T>,
  ): Promise<T>
  /** All rows of a server table, by column names. */
  system<T>(text: string): Promise<T[]>
  stats(): DriverStats
  close(): Promise<void>
}

/** The protocol has two bytes for the number of statements of a batch. */
const MAX_BATCH = 65_535

/** The statements of one driver, on the connections of one cluster. */
export function createSession(options: SessionOptions): Session {
  const { statementTimeout } = options
  const { use, stats, close } = createCluster(options)

  async function run(client: Client, { text, bindings }: Statement, how: object): Promise<Page> {
    const given = await values(client, text, bindings)
    return pageOf(await client.execute(text, given, { prepare: true, readTimeout: statementTimeout, ...how }))
  }

  return {
    page: (statement, { size, after, isSerial = false }) =>
      use(false, (client) =>
        run(client, statement, {
          fetchSize: size,
          isIdempotent: true,
          ...(after !== undefined && { pageState: after }),
          ...(isSerial && { consistency: types.consistencies.serial }),
        }),
      ),
    async write(statements) {
      const [first, ...others] = statements
      if (first === undefined) return true
      requireOneBatch(statements)
      return use(true, async (client) => {
        if (others.length === 0) return wasApplied(await run(client, first, {}))
        const queries: { query: string; params: unknown[] }[] = []
        for (const { text, bindings } of statements)
          queries.push({ query: text, params: await values(client, text, bindings) })
        const how = { prepare: true, logged: true, readTimeout: statementTimeout }
        return wasApplied(pageOf(await client.batch(queries, how)))
      })
    },
    parameters: (text) => use(false, (client) => parametersOf(client, text), false),
    unprepared: (keyspace, isWrite, work) =>
      use(isWrite, (client, watch) =>
        runUnprepared(client, { keyspace, statementTimeout, isWrite, watch }, work),
      ),
    system: (text) => use(false, (client) => systemRows(client, text)),
    stats,
    close,
  }
}

function requireOneBatch(statements: readonly Statement[]): void {
  if (statements.length <= MAX_BATCH) return
  throw fail('too_complex', {
    message: `A write may have ${MAX_BATCH} rows at once`,
    hint: `These are ${statements.length}; write them in several calls.`,
  })
}

async function systemRows<T>(client: Client, text: string): Promise<T[]> {
  const rows: T[] = []
  let pageState: string | undefined
  do {
    const page = await client.execute(text, [], { fetchSize: 5_000, ...(pageState && { pageState }) })
    rows.push(...(page.rows as unknown as T[])) // with the columns of the statement
    pageState = page.pageState ?? undefined
  } while (pageState !== undefined)
  return rows
}

async function values(client: Client, text: string, bindings: readonly Binding[]): Promise<unknown[]> {
  const parameters = await parametersOf(client, text)
  return bindings.map(({ value, column }, index) => {
    const parameter = parameters[index]
    if (parameter === undefined) throw new Error('There are more values than parameters')
    return value === undefined ? types.unset : bound(value, parameter.type, column)
  })
}
