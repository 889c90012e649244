/**
 * One row for the FROM clause of a statement that reads definitions, which the server writes under locks on their tables. Evaluated before
 * the first definition, it limits each wait for a lock until the end of the transaction, in milliseconds.
 */
export const LIMITED_LOCKS = `(select pg_catalog.set_config('lock_timeout', '2000', true) offset 0) as limited`
