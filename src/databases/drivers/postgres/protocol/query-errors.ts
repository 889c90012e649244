/** A pipelined read whose connection was lost, or was delayed too long by an earlier query. */
export class Displaced extends Error {}

/**
 * The plan of a prepared statement no longer fits the tables; or there is no such statement, or there is one already (a pooler has assigned
 * another session).
 */
export const STALE_CODES: ReadonlySet<string> = new Set(['0A000', '26000', '42P05'])

export const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : ''

/**
 * PL/pgSQL has prepared an expression for another type of a column, and does not prepare it again in this session: "type of parameter 15
 * (bigint) does not match that when preparing the plan (integer)". Nothing else is reported by these functions of the server.
 */
export const isOfStaleFunction = (error: Error): boolean =>
  codeOf(error) === '42804' &&
  'routine' in error &&
  typeof error.routine === 'string' &&
  error.routine.startsWith('plpgsql_param_')
