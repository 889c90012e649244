import type { Client } from '#databases/clients/clients.ts'
import { Failure } from '#kernel/errors.ts'
import { fail } from './errors.ts'

/**
 * Whether SQL or a function writes is only known when the database rejects it as read-only. On a frozen client, the error is then
 * `client_frozen`.
 */
export const explainReadOnly =
  ({ isFrozen }: Pick<Client, 'isFrozen'>) =>
  (error: unknown): never => {
    if (!isFrozen || !(error instanceof Failure) || error.code !== 'read_only') throw error
    throw fail('client_frozen', { cause: error, hint: 'Unfreeze it with PUT /admin/clients/{name}/freeze' })
  }
