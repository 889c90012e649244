import type { Client } from '#databases/clients/clients.ts'
import { Failure } from '#kernel/errors.ts'
import { fail } from './errors.ts'

/** SQL and functions are known to write only when the database refuses it; on a frozen client that is why it did. */
export const explainReadOnly =
  ({ isFrozen }: Pick<Client, 'isFrozen'>) =>
  (error: unknown): never => {
    if (!isFrozen || !(error instanceof Failure) || error.code !== 'read_only') throw error
    throw fail('client_frozen', { cause: error, hint: 'PUT /admin/clients/{name}/freeze thaws it' })
  }
