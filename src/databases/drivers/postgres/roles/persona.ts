import { hash } from 'node:crypto'
import type { Persona } from '#databases/drivers/driver.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/row-query.ts'
import type { FirstStatement } from '#databases/drivers/postgres/protocol/run-options.ts'
import { fail } from '#databases/failures.ts'

/** The client's own role, said where callers have others: a trigger may have left its choice on the session. */
export const OWN: Persona = { role: 'none', claims: '{}' }

/**
 * For statements of our own: nothing of the database is found by a name without a schema, also none of its operators. Until the end of
 * the transaction. Temporary tables are last, since they are first where they are not named.
 */
export const ONLY_CATALOG = `select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`

/**
 * SET LOCAL ROLE and the claims of one transaction, with bound values; `none` is the client's own role. Claims are set after the role, so
 * that nothing is set for a role that could not be taken.
 */
const PERSONA_SQL = `select pg_catalog.set_config('role', $1, true), pg_catalog.set_config('request.claims', $2, true)`
/** Of the text, so that behind a pooler no other program's statement, nor another version's, is taken for it. */
const PERSONA_NAME = `p${hash('sha256', PERSONA_SQL).slice(0, 24)}`

/**
 * An answer that may be streamed takes as long as its reader, and the server counts that as time of the statement: the pool keeps
 * the time instead. The server's own limit is for the case that this process is gone.
 */
const LONG_SETTING = `pg_catalog.set_config('statement_timeout', '1h', true)`
const LONG_SQL = `select ${LONG_SETTING}`
const LONG_PERSONA_SQL = `${PERSONA_SQL}, ${LONG_SETTING}`
const nameOf = (text: string) => `p${hash('sha256', text).slice(0, 24)}`
const [LONG_NAME, LONG_PERSONA_NAME] = [nameOf(LONG_SQL), nameOf(LONG_PERSONA_SQL)]

type Wanted = Readonly<Record<'isLong' | 'isPrepared' | 'isOwn', boolean>> & {
  /** Behind a pooler: what the session has to have. */
  readonly settings?: string | undefined
}

/** What goes in front of a statement, in its transaction. */
export function firstStatement(persona: Persona | undefined, wanted: Wanted): FirstStatement | undefined {
  const { isLong, isPrepared, isOwn, settings } = wanted
  if (settings !== undefined) return pooledStatement(persona, { ...wanted, settings })
  if (isOwn) return catalogStatement(persona)
  if (persona === undefined)
    return isLong ? { name: isPrepared ? LONG_NAME : '', text: LONG_SQL, values: [] } : undefined
  const [name, text] = isLong ? [LONG_PERSONA_NAME, LONG_PERSONA_SQL] : [PERSONA_NAME, PERSONA_SQL]
  return { name: isPrepared ? name : '', text, values: [persona.role, persona.claims] }
}

/** In front of a statement of our own. */
const catalogStatement = (persona: Persona | undefined): FirstStatement => ({
  name: '',
  text: persona === undefined ? ONLY_CATALOG : `${ONLY_CATALOG}, ${settingsOf(PERSONA_SQL)}`,
  values: persona === undefined ? [] : [persona.role, persona.claims],
})

/** All of it, and before it what the session does not have from its start. */
function pooledStatement(
  persona: Persona | undefined,
  { isLong, isPrepared, isOwn, settings }: Wanted & { readonly settings: string },
): FirstStatement {
  const parts = [
    settings,
    ...(isLong ? [LONG_SETTING] : []),
    ...(isOwn ? [settingsOf(ONLY_CATALOG)] : []),
    ...(persona === undefined ? [] : [settingsOf(PERSONA_SQL)]),
  ]
  const text = `select ${parts.join(', ')}`
  return {
    name: isPrepared ? nameOf(text) : '',
    text,
    values: persona === undefined ? [] : [persona.role, persona.claims],
  }
}

const settingsOf = (select: string): string => select.slice('select '.length)

/** The role is gone, or the client may not become it any more: nothing else was run. */
export function personaFailure(cause: unknown): unknown {
  // 22023: there is no such role; 42501: the client is no member of it.
  return ['22023', '42501'].includes(codeOf(cause)) ? fail('roles_unavailable', { cause }) : failureOf(cause)
}

/** In a transaction that is open; nobody else has the connection while it runs. */
export async function become(client: RowClient, { role, claims }: Persona): Promise<void> {
  try {
    await client.query(PERSONA_SQL, [role, claims])
  } catch (error) {
    throw personaFailure(error)
  }
}
