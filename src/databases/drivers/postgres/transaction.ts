import type { OpenTransaction, Persona, TransactionOptions } from '#databases/drivers/driver.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { codeOf, STALE_CODES } from '#databases/drivers/postgres/protocol/query-errors.ts'
import { become } from '#databases/drivers/postgres/roles/persona.ts'
import { requirePresence } from '#databases/drivers/presence.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

type TransactionSetup = TransactionOptions & {
  /** Time limit of BEGIN, COMMIT and ROLLBACK, milliseconds. */
  readonly timeout: number
  readonly persona: Persona | undefined
}

/**
 * Runs the work in a transaction on one connection: commits when it returns, rolls back when it throws. In any case the pool gets the
 * connection back outside a transaction, or closes it.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (on: OpenTransaction) => Promise<T>,
  options: TransactionSetup,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const client = await pool.acquire(options.presence)
    try {
      return await transactAgain(client, work, options)
    } catch (error) {
      // Everything was rolled back. The connection is closed when it is released.
      if (!client.hasStaleFunction || attempt === ATTEMPTS) throw error
    } finally {
      pool.release(client)
    }
  }
}

/** Other connections may be as stale. */
const ATTEMPTS = 5

async function transactAgain<T>(
  client: RowClient,
  work: (on: OpenTransaction) => Promise<T>,
  options: TransactionSetup,
): Promise<T> {
  try {
    return await transact(client, work, options)
  } catch (error) {
    if (!(error instanceof Failure && STALE_CODES.has(codeOf(error.cause))) || !client.isClean()) throw error
    // Tables have changed under prepared statements. Everything was rolled back, so it can run again with new ones.
    client.statements.clear()
    return await transact(client, work, options)
  }
}

async function transact<T>(
  client: RowClient,
  work: (on: OpenTransaction) => Promise<T>,
  options: TransactionSetup,
): Promise<T> {
  client.presence = options.presence
  try {
    const result = await begun(client, work, options)
    requirePresence(client.presence)
    // From here on the transaction completes even if the caller leaves, so that its outcome is reported correctly.
    client.presence = undefined
    await commit(client, options)
    return result
  } catch (error) {
    await undo(client, options)
    throw failureOf(error)
  }
}

/** Before COMMIT, a lost connection leaves nothing in doubt. */
async function begun<T>(
  client: RowClient,
  work: (on: OpenTransaction) => Promise<T>,
  options: TransactionSetup,
): Promise<T> {
  try {
    await control(client, beginText(options), options)
    if (client.pooled !== undefined) await control(client, `select ${client.pooled.settings}`, options)
    const result = await work(client)
    // Deferred constraints run at COMMIT under the caller's role, whatever role the last statement had.
    if (options.persona !== undefined) await become(client, options.persona)
    return result
  } catch (error) {
    const failure = failureOf(error)
    if (!(failure instanceof Failure) || failure.code !== 'connection_lost') throw failure
    const { details, cause } = failure
    throw fail('connection_lost', {
      hint: 'Nothing of the transaction was done.',
      ...(details && { details }),
      cause,
    })
  }
}

const beginText = ({ isolation, readOnly }: TransactionOptions): string =>
  `begin${isolation === undefined ? '' : ` isolation level ${isolation}`}${readOnly === true ? ' read only' : ''}`

async function commit(client: RowClient, options: TransactionSetup): Promise<void> {
  try {
    const command = await control(client, 'commit', options)
    // The server answers ROLLBACK when the work has swallowed a failure.
    if (command !== 'COMMIT') throw new Error('The work continued after a statement had failed')
  } catch (error) {
    const failure = failureOf(error)
    if (!(failure instanceof Failure) || failure.code !== 'connection_lost') throw failure
    throw fail('connection_lost', {
      hint: 'It is not known whether the transaction was committed. With an Idempotency-Key it can be sent again.',
      cause: error,
    })
  }
}

/** Rolls back. If the outcome is uncertain, closes the connection, and the server rolls back. */
async function undo(client: RowClient, options: TransactionSetup): Promise<void> {
  client.presence = undefined
  if (client.active !== undefined) return client.destroy()
  if (!client.isAlive()) return
  try {
    await control(client, 'rollback', options)
  } catch {
    client.destroy()
  }
}

/** Returns the command tag of the server. */
async function control(client: RowClient, text: string, { timeout }: TransactionSetup): Promise<string> {
  try {
    client.since = performance.now()
    // query_timeout is missing in pg's types.
    const query = { text, query_timeout: timeout } as { text: string }
    return (await client.query(query)).command
  } catch (error) {
    if (error instanceof Error && error.message === 'Query read timeout') {
      client.destroy()
      throw fail('connection_lost', { cause: error })
    }
    throw error
  }
}
