/**
 * One row, first in the FROM clause of a statement that reads definitions: `pg_get_indexdef` and others lock the tables. `offset 0` keeps the
 * server from moving the call behind them. From then on, until the end of the transaction, a wait for a lock ends after two seconds.
 */
export const LIMITED_LOCKS = `(select pg_catalog.set_config('lock_timeout', '2000', true) offset 0) as limited`
