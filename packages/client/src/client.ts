import { type ClientOptions, connect } from './connection.ts'
import { UNBOUNDED } from './request.ts'
import { rpc, sql, table } from './rows/table.ts'
import { type TransactionOptions, type TransactionState, transaction } from './rows/transaction.ts'
import type { Client } from './types/client.ts'
import type { AnyDatabase, SchemaName } from './types/database.ts'

export type { ClientOptions, Session } from './connection.ts'
export { type ErrorCode, type FailureOf, GatehouseError } from './failure.ts'
export type { LiveListener, LiveState, LiveStatus } from './live/open-live.ts'
export type { Failure, Result, Success } from './rows/result.ts'
export type { Client } from './types/client.ts'
export type { Json } from './types/database.ts'
export type { SelectError } from './types/select-error.ts'

/**
 * A client of a Gatehouse service. `Database` is what `gatehouse types --shape supabase` prints. It keeps no state: what a request may see
 * depends on `key` and `session` alone.
 */
export function createClient<Database = AnyDatabase>(
  options: ClientOptions,
): Client<Database, SchemaName<Database>> {
  const connection = connect(options)
  const inSchema = (schema: string): object => ({
    from: (name: string) => table(connection, { table_name: name, schema_name: schema }),
    rpc: (name: string, args: object = {}) => rpc(connection, schema, name, args),
    schema: inSchema,
    transaction: (steps: TransactionState['steps'], options: TransactionOptions = {}) =>
      transaction(connection, { steps, options, bounds: UNBOUNDED }),
    sql: (query: string, params?: readonly unknown[]) => sql(connection, { query, params }),
  })
  // The types tell what the builders do with the rows of this database.
  return inSchema('public') as unknown as Client<Database, SchemaName<Database>>
}
