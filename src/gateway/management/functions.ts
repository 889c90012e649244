import type { FunctionFilter, FunctionName } from '#databases/drivers/management.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireRightBeyondPolicies } from '../caller/caller-rights.ts'
import { isProtected } from '../same-database.ts'
import { type Changer, type EmitChange, managementOf, runAudited } from './change.ts'

export const listFunctions = (caller: GatewayCaller, filter: FunctionFilter) =>
  managementOf(caller).functions.list(filter)

/** Creates or replaces the one function that the text defines. */
export async function upsertManagedFunction(changer: Changer, text: string) {
  const { caller, clients } = changer
  // Another client of the database calls it, too.
  const bound = await isProtected(clients, caller.backend)
  if (bound) requireRightBeyondPolicies(caller, 'management.functions.write')
  const ddl = await managementOf(caller).functions.upsert(text, { bound })
  const { schema, name, definition } = ddl
  const announce = (emit: EmitChange) =>
    emit('schema_function_upserted', { function: `${schema}.${name}`, signature: definition.signature })
  await runAudited(changer, { operation: 'upsert_function', schema, object: name, announce }, ddl)
  return {
    schema_name: schema,
    function_name: name,
    signature: definition.signature,
    definition: definition.after,
    replaced: definition.before !== null,
  }
}

/** Drops a function, unless something depends on it. */
export async function dropManagedFunction(changer: Changer, asked: FunctionName) {
  const ddl = await managementOf(changer.caller).functions.drop(asked)
  const { schema, name, definition } = ddl
  const announce = (emit: EmitChange) =>
    emit('schema_function_dropped', { function: `${schema}.${name}`, signature: definition.signature })
  await runAudited(changer, { operation: 'drop_function', schema, object: name, announce }, ddl)
  return { schema_name: schema, function_name: name, signature: definition.signature }
}
