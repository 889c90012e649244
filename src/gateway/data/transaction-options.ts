import type { Isolation, TransactionOptions } from '#databases/drivers/driver.ts'
import { fail } from '../errors.ts'

type TransactionBody = {
  readonly operations: readonly { readonly id: string; readonly kind: string }[]
  readonly options: { readonly isolation_level?: string; readonly read_only?: boolean }
}

/** Reads the options, and throws if the operations do not fit them. */
export function transactionOptions(
  { operations, options }: TransactionBody,
  maximum: number,
): TransactionOptions {
  if (operations.length > maximum)
    throw fail('too_many_operations', { details: { maximum, given: operations.length } })
  const ids = new Set(operations.map(({ id }) => id))
  if (ids.size < operations.length) throw malformed('operations', 'Every operation needs a unique id.')
  const isolation = isolationOf(options.isolation_level)
  if (options.read_only !== true) return isolation
  const writes = operations.find(({ kind }) => kind !== 'fetch')
  if (writes !== undefined)
    throw malformed('options', `The transaction is read-only, but operation ${writes.id} writes.`)
  return { ...isolation, readOnly: true }
}

const malformed = (field: string, hint: string) => fail('invalid_transaction', { hint, details: { field } })

const LEVELS: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

function isolationOf(asked: string | undefined): TransactionOptions {
  if (asked === undefined) return {}
  const isolation = LEVELS.find((level) => level === asked.toLowerCase().replace(/[_-]/g, ' '))
  if (isolation === undefined)
    throw malformed('options', 'isolation_level must be read_committed, repeatable_read or serializable.')
  return { isolation }
}
