import { hash } from 'node:crypto'
import type { Persona } from '#databases/drivers/driver.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/row-query.ts'
import type { FirstStatement } from '#databases/drivers/postgres/protocol/run-options.ts'
import { fail } from '#databases/failures.ts'

/** The client's own role. It is set explicitly where callers have other roles, because a trigger may have changed the session's role. */
export const OWN: Persona = { role: 'none', claims: '{}' }

/**
 * The search path of statements of the gateway, until the end of the transaction: no object or operator of the client's database is found
 * without its schema. pg_temp is named last, because it comes first where it is not named.
 */
export const ONLY_CATALOG = `select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`

/**
 * SET LOCAL ROLE and the claims of one transaction, with bound values; `none` is the client's own role. Claims are set after the role, so
 * that they are not set when the role cannot be taken.
 */
const PERSONA_SQL = `select pg_catalog.set_config('role', $1, true), pg_catalog.set_config('request.claims', $2, true)`
/** A hash of the text: with a pooler, statements of other programs or versions must not have the same name. */
const PERSONA_NAME = `p${hash('sha256', PERSONA_SQL).slice(0, 24)}`

/**
 * A streamed answer takes as long as its reader, and the server counts that time as the statement's, so the pool limits the time instead.
 * The server's limit remains for the case that this process has died.
 */
const LONG_SETTING = `pg_catalog.set_config('statement_timeout', '1h', true)`
const LONG_SQL = `select ${LONG_SETTING}`
const LONG_PERSONA_SQL = `${PERSONA_SQL}, ${LONG_SETTING}`
const nameOf = (text: string) => `p${hash('sha256', text).slice(0, 24)}`
const [LONG_NAME, LONG_PERSONA_NAME] = [nameOf(LONG_SQL), nameOf(LONG_PERSONA_SQL)]

type Wanted = Readonly<Record<'isLong' | 'isPrepared' | 'isOwn', boolean>> & {
  /** With a pooler: the settings that the session needs. */
  readonly settings?: string | undefined
}

/** The statement that precedes another one, in its transaction. */
export function firstStatement(persona: Persona | undefined, wanted: Wanted): FirstStatement | undefined {
  const { isLong, isPrepared, isOwn, settings } = wanted
  if (settings !== undefined) return pooledStatement(persona, { ...wanted, settings })
  if (isOwn) return catalogStatement(persona)
  if (persona === undefined)
    return isLong ? { name: isPrepared ? LONG_NAME : '', text: LONG_SQL, values: [] } : undefined
  const [name, text] = isLong ? [LONG_PERSONA_NAME, LONG_PERSONA_SQL] : [PERSONA_NAME, PERSONA_SQL]
  return { name: isPrepared ? name : '', text, values: [persona.role, persona.claims] }
}

/** The statement that precedes a statement of the gateway. */
const catalogStatement = (persona: Persona | undefined): FirstStatement => ({
  name: '',
  text: persona === undefined ? ONLY_CATALOG : `${ONLY_CATALOG}, ${settingsOf(PERSONA_SQL)}`,
  values: persona === undefined ? [] : [persona.role, persona.claims],
})

/** With a pooler, the session's settings come first. */
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

/** The role no longer exists, or the client may no longer take it. Nothing else was run. */
export function personaFailure(cause: unknown): unknown {
  // 22023: the role does not exist; 42501: the client is not a member of it.
  return ['22023', '42501'].includes(codeOf(cause)) ? fail('roles_unavailable', { cause }) : failureOf(cause)
}

/** For an open transaction on a connection that is not shared. */
export async function become(client: RowClient, { role, claims }: Persona): Promise<void> {
  try {
    await client.query(PERSONA_SQL, [role, claims])
  } catch (error) {
    throw personaFailure(error)
  }
}
