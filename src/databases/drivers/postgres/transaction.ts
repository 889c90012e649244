import type { OpenTransaction, Persona, TransactionOptions } from '#databases/drivers/driver.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { codeOf, STALE_CODES } from '#databases/drivers/postgres/protocol/row-query.ts'
import { become } from '#databases/drivers/postgres/roles/persona.ts'
import { requirePresence } from '#databases/drivers/presence.ts'
import { fail } from '#databases/failures.ts'
import { Failure } from '#kernel/errors.ts'

type Options = TransactionOptions & {
  /** How long BEGIN, COMMIT and ROLLBACK may stay unanswered, milliseconds. */
  readonly timeout: number
  readonly persona: Persona | undefined
}

/**
 * One connection and one transaction for the work: committed when it returns, rolled back when it throws. Whatever happens, the
 * pool gets the connection back outside of any transaction, or ends it.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (on: OpenTransaction) => Promise<T>,
  options: Options,
): Promise<T> {
  const client = await pool.acquire(options.presence)
  try {
    return await transact(client, work, options)
  } catch (error) {
    if (!(error instanceof Failure && STALE_CODES.has(codeOf(error.cause))) || !client.isClean()) throw error
    // Tables have changed under prepared statements. All was rolled back, so it can run once more, prepared anew.
    client.statements.clear()
    return await transact(client, work, options)
  } finally {
    pool.release(client)
  }
}

async function transact<T>(
  client: RowClient,
  work: (on: OpenTransaction) => Promise<T>,
  options: Options,
): Promise<T> {
  client.presence = options.presence
  try {
    const result = await begun(client, work, options)
    requirePresence(client.presence)
    // From here on it is done whoever leaves, and what is told of it is true.
    client.presence = undefined
    await commit(client, options)
    return result
  } catch (error) {
    await undo(client, options)
    throw failureOf(error)
  }
}

/** Before COMMIT the loss of the connection leaves nothing in doubt. */
async function begun<T>(
  client: RowClient,
  work: (on: OpenTransaction) => Promise<T>,
  options: Options,
): Promise<T> {
  try {
    await control(client, beginText(options), options)
    if (client.pooled !== undefined) await control(client, `select ${client.pooled.settings}`, options)
    const result = await work(client)
    // What was put off until COMMIT is the caller's too, whoever the last statement ran as.
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

async function commit(client: RowClient, options: Options): Promise<void> {
  try {
    const command = await control(client, 'commit', options)
    // What the server answers to COMMIT after a failure that the work has kept to itself.
    if (command !== 'COMMIT') throw new Error('The work went on after a statement had failed')
  } catch (error) {
    const failure = failureOf(error)
    if (!(failure instanceof Failure) || failure.code !== 'connection_lost') throw failure
    throw fail('connection_lost', {
      hint: 'It is not known whether the transaction was committed. With an Idempotency-Key it can be sent again.',
      cause: error,
    })
  }
}

/** What cannot be rolled back for certain is broken off, and the server rolls back. */
async function undo(client: RowClient, options: Options): Promise<void> {
  client.presence = undefined
  if (client.active !== undefined) return client.destroy()
  if (!client.isAlive()) return
  try {
    await control(client, 'rollback', options)
  } catch {
    client.destroy()
  }
}

/** The word that the server says it has done. */
async function control(client: RowClient, text: string, { timeout }: Options): Promise<string> {
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
