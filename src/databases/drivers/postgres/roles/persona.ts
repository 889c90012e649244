import { hash } from 'node:crypto'
import type { Persona, RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { failureOf } from '#databases/drivers/postgres/protocol/errors.ts'
import { codeOf } from '#databases/drivers/postgres/protocol/query-errors.ts'
import type { FirstStatement } from '#databases/drivers/postgres/protocol/run-options.ts'
import { fail } from '#databases/failures.ts'

/** The client's own role. It is set explicitly where callers have other roles, because a trigger may have changed the session's role. */
export const OWN: Persona = { role: 'none', claims: '{}' }

/** On a client that fills `request.jwt.claims` every persona does, so that none finds what another one has left in the session. */
export const completePersona = (persona: Persona, { setsJwtClaims }: RowLevelSecurity): Persona =>
  setsJwtClaims === true ? { ...persona, jwtClaims: jwtClaimsOf(persona) } : persona

/** The claims as PostgREST sets them: `sub` is the user, and `role` that of the database. */
function jwtClaimsOf({ role, claims }: Persona): string {
  if (role === OWN.role) return ''
  const seen: { readonly user_id?: string } = JSON.parse(claims)
  return JSON.stringify({ ...seen, ...(seen.user_id !== undefined && { sub: seen.user_id }), role })
}

/** For the message of a refusal. Undefined for the client's own role. */
export function roleOf({ role, claims }: Persona): string | undefined {
  if (role === OWN.role) return undefined
  return claims === '{}'
    ? `without a session, a request acts as ${role}, unless its key has the right gateway.bypass_row_level_security`
    : `the request acts as ${role}`
}

/** The session that the claims are of has no active organization. */
export const lacksOrganization = ({ claims }: Persona): boolean => claims.includes('"organization_id":null')

/**
 * The search path of statements of the gateway, until the end of the transaction: no object or operator of the client's database is found
 * without its schema. pg_temp is named last, because it comes first where it is not named.
 */
const SYSTEM_PATH = `pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`
export const ONLY_CATALOG = `select ${SYSTEM_PATH}`

/**
 * SET LOCAL ROLE and the claims of one transaction, with bound values; `none` is the client's own role. Claims are set after the role, so
 * that they are not set when the role cannot be taken. The server would send the claims back.
 */
const PERSONA_SETTINGS = `pg_catalog.set_config('role', $1, true) is null, pg_catalog.set_config('request.claims', $2, true) is null`
const JWT_CLAIMS_SETTING = `pg_catalog.set_config('request.jwt.claims', $3, true) is null`
/** A read-only transaction cannot become a writing one again. */
const READ_ONLY_SETTING = `pg_catalog.set_config('transaction_read_only', 'on', true)`

/**
 * A streamed answer takes as long as its reader, and the server counts that time as the statement's, so the pool limits the time instead.
 * The server's limit remains for the case that this process has died.
 */
const LONG_SETTING = `pg_catalog.set_config('statement_timeout', '1h', true)`

type Statement = { readonly name: string; readonly text: string }

/** Named by a hash of the text: with a pooler, statements of other programs or versions must not have the same name. */
function statementOf(...parts: readonly string[]): Statement {
  const text = `select ${parts.join(', ')}`
  return { name: `p${hash('sha256', text).slice(0, 24)}`, text }
}

const LONG = statementOf(LONG_SETTING)

const shortAndLong = (...parts: readonly string[]) => ({
  short: statementOf(...parts),
  long: statementOf(...parts, LONG_SETTING),
})
const PERSONA = shortAndLong(PERSONA_SETTINGS)
const READING_PERSONA = shortAndLong(PERSONA_SETTINGS, READ_ONLY_SETTING)
const JWT_PERSONA = shortAndLong(PERSONA_SETTINGS, JWT_CLAIMS_SETTING)
const READING_JWT_PERSONA = shortAndLong(PERSONA_SETTINGS, JWT_CLAIMS_SETTING, READ_ONLY_SETTING)

function personaStatement({ readOnly, jwtClaims }: Persona, isLong: boolean): Statement {
  const [writing, reading] =
    jwtClaims === undefined ? [PERSONA, READING_PERSONA] : [JWT_PERSONA, READING_JWT_PERSONA]
  return (readOnly === true ? reading : writing)[isLong ? 'long' : 'short']
}

type FirstStatementOptions = Readonly<Record<'isLong' | 'isPrepared' | 'isOwn', boolean>> & {
  /** With a pooler: the settings that the session needs. */
  readonly settings?: string | undefined
}

/** The statement that precedes another one, in its transaction. */
export function firstStatement(
  persona: Persona | undefined,
  wanted: FirstStatementOptions,
): FirstStatement | undefined {
  const { isLong, isPrepared, isOwn, settings } = wanted
  if (settings !== undefined) return pooledStatement(persona, { ...wanted, settings })
  if (isOwn)
    return { ...statementOf(SYSTEM_PATH, ...settingsOf(persona)), name: '', values: valuesOf(persona) }
  if (persona === undefined && !isLong) return undefined
  const { name, text } = persona === undefined ? LONG : personaStatement(persona, isLong)
  return { name: isPrepared ? name : '', text, values: valuesOf(persona) }
}

const settingsOf = (persona: Persona | undefined): readonly string[] => {
  if (persona === undefined) return []
  const { readOnly, jwtClaims } = persona
  return [
    PERSONA_SETTINGS,
    ...(jwtClaims === undefined ? [] : [JWT_CLAIMS_SETTING]),
    ...(readOnly === true ? [READ_ONLY_SETTING] : []),
  ]
}

const valuesOf = (persona: Persona | undefined): string[] => {
  if (persona === undefined) return []
  const { role, claims, jwtClaims } = persona
  return [role, claims, ...(jwtClaims === undefined ? [] : [jwtClaims])]
}

/** With a pooler, the session's settings come first. */
function pooledStatement(
  persona: Persona | undefined,
  { isLong, isPrepared, isOwn, settings }: FirstStatementOptions & { readonly settings: string },
): FirstStatement {
  const { name, text } = statementOf(
    settings,
    ...(isLong ? [LONG_SETTING] : []),
    ...(isOwn ? [SYSTEM_PATH] : []),
    ...settingsOf(persona),
  )
  return { name: isPrepared ? name : '', text, values: valuesOf(persona) }
}

/** The role no longer exists, or the client may no longer take it. Nothing else was run. */
export function personaFailure(cause: unknown): unknown {
  // 22023: the role does not exist; 42501: the client is not a member of it.
  return ['22023', '42501'].includes(codeOf(cause)) ? fail('roles_unavailable', { cause }) : failureOf(cause)
}

/** For an open transaction on a connection that is not shared. */
export async function become(client: RowClient, persona: Persona): Promise<void> {
  try {
    await client.query(personaStatement(persona, false).text, valuesOf(persona))
  } catch (error) {
    throw personaFailure(error)
  }
}
