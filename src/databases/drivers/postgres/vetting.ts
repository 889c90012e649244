import type { RowLevelSecurity } from '#databases/drivers/driver.ts'
import {
  type CallerRoleFacts,
  callerRolesSql,
  unsafeCallerRoles,
} from '#databases/drivers/postgres/caller-roles.ts'
import type { RowClient } from '#databases/drivers/postgres/connection.ts'
import { connectFailure } from '#databases/drivers/postgres/errors.ts'
import { type RoleFacts, roleSql, unsafe } from '#databases/drivers/postgres/role.ts'
import type { Failure } from '#kernel/errors.ts'

type Options = {
  /** Milliseconds. */
  readonly connectTimeout: number
  readonly allowServerRights?: boolean
  readonly rowLevelSecurity?: RowLevelSecurity | undefined
}

const vettedFor = 60_000

/** Looks at the roles behind a new connection, at most every 60 s; a refusal holds as long without connecting again. */
export function vetting(options: Options): (open: () => Promise<RowClient>) => Promise<RowClient> {
  let verdict: { readonly at: number; readonly refusal: Failure | undefined } | undefined
  return async (open) => {
    const valid = verdict && performance.now() - verdict.at < vettedFor ? verdict : undefined
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

async function refusalOf(
  client: RowClient,
  { allowServerRights = false, rowLevelSecurity, connectTimeout }: Options,
): Promise<Failure | undefined> {
  const timer = setTimeout(() => client.destroy(), connectTimeout)
  try {
    const { rows } = await client.query<{ role: RoleFacts }>(roleSql)
    const refusal = rows[0] && unsafe(rows[0].role, allowServerRights)
    if (refusal !== undefined || rowLevelSecurity === undefined) return refusal
    const { anonymousRole, signedInRole } = rowLevelSecurity
    const callers = await client.query<CallerRoleFacts>(callerRolesSql, [[anonymousRole, signedInRole]])
    return unsafeCallerRoles(callers.rows)
  } catch (error) {
    client.destroy()
    throw connectFailure(error)
  } finally {
    clearTimeout(timer)
  }
}
