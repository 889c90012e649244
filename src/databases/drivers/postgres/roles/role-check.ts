import type pg from 'pg'
import type { DriverContext, RowLevelSecurity } from '#databases/drivers/driver.ts'
import type { RowClient } from '#databases/drivers/postgres/protocol/connection.ts'
import { connectFailure } from '#databases/drivers/postgres/protocol/errors.ts'
import {
  type CallerRoleFacts,
  callerRolesSql,
  unsafeCallerRoles,
} from '#databases/drivers/postgres/roles/caller-roles.ts'
import { type RoleFacts, roleSql, unsafe } from '#databases/drivers/postgres/roles/client-role.ts'
import { ONLY_CATALOG } from '#databases/drivers/postgres/roles/persona.ts'
import { reachableRolesSql, unsafeSqlRole } from '#databases/drivers/postgres/roles/sql-role.ts'
import {
  type UuidPreset,
  unsafePresets,
  uuidPresetsSql,
} from '#databases/drivers/postgres/roles/uuid-presets.ts'
import type { Failure } from '#kernel/errors.ts'

type RoleCheckOptions = {
  /** Milliseconds. */
  readonly connectTimeout: number
  readonly allowServerRights?: boolean
  readonly controlServer?: DriverContext['controlServer'] | undefined
  readonly rowLevelSecurity?: RowLevelSecurity | undefined
  /** Roles that this login must not be able to become. */
  readonly mayNotBecome?: () => Promise<readonly string[]>
}

export type RoleCheck = (open: () => Promise<RowClient>) => Promise<RowClient>

const VETTED_FOR = 60_000

/** Checks the roles of new connections, at most every 60 s; for that time a refusal is repeated without connecting. */
export function createRoleCheck(options: RoleCheckOptions): RoleCheck {
  let verdict: { readonly at: number; readonly refusal: Failure | undefined } | undefined
  return async (open) => {
    const valid = verdict && performance.now() - verdict.at < VETTED_FOR ? verdict : undefined
    if (valid?.refusal) throw valid.refusal
    const client = await open()
    if (valid) return client
    const refusal = await refusalOf(client, options)
    verdict = { at: performance.now(), refusal }
    if (refusal === undefined) return client
    client.destroy()
    throw refusal
  }
}

/**
 * Runs a statement of the gateway with the search path pg_catalog, in one transaction and round trip: objects of the client's database,
 * such as its own `pg_has_role` or `=`, must not affect the check.
 */
async function inCatalog<T extends pg.QueryResultRow>(
  client: RowClient,
  text: string,
): Promise<readonly T[]> {
  const results: unknown = await client.query(`${ONLY_CATALOG}; ${text}`)
  // pg returns an array for several statements in one text.
  const [, { rows }] = results as readonly [unknown, pg.QueryResult<T>]
  return rows
}

async function refusalOf(
  client: RowClient,
  {
    allowServerRights = false,
    controlServer,
    rowLevelSecurity,
    mayNotBecome,
    connectTimeout,
  }: RoleCheckOptions,
): Promise<Failure | undefined> {
  const timer = setTimeout(() => client.destroy(), connectTimeout)
  try {
    const literals = (names: readonly string[]) => names.map((name) => client.escapeLiteral(name)).join(', ')
    const { startedAt = '', roles = [] } = (await controlServer?.()) ?? {}
    const facts = roleSql({ startedAt: literals([startedAt]), roles: literals(roles) })
    const [row] = await inCatalog<{ role: RoleFacts }>(client, facts)
    const refusal = row && unsafe(row.role, allowServerRights)
    if (refusal !== undefined) return refusal
    if (mayNotBecome !== undefined)
      return unsafeSqlRole(await inCatalog(client, reachableRolesSql(literals(await mayNotBecome()))))
    if (rowLevelSecurity === undefined) return undefined
    const asked = literals([rowLevelSecurity.anonymousRole, rowLevelSecurity.signedInRole])
    const unbound = unsafeCallerRoles(await inCatalog<CallerRoleFacts>(client, callerRolesSql(asked)))
    const presets = uuidPresetsSql(rowLevelSecurity, literals)
    if (unbound !== undefined || presets === undefined) return unbound
    return unsafePresets(await inCatalog<UuidPreset>(client, presets))
  } catch (error) {
    client.destroy()
    throw connectFailure(error)
  } finally {
    clearTimeout(timer)
  }
}
