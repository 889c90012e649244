import type { FunctionFilter, FunctionName } from '#databases/drivers/management.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireRightBeyondPolicies } from '../caller/caller-rights.ts'
import { isProtected } from '../same-database.ts'
import { audited, type Changer, type EmitChange, managementOf } from './change.ts'

export const listFunctions = (caller: GatewayCaller, filter: FunctionFilter) =>
  managementOf(caller).functions.list(filter)

/** Creates or replaces the one function that the text defines. */
export async function upsertManagedFunction(changer: Changer, ddl: string) {
  const { caller, clients } = changer
  // Another client of the database calls it, too.
  const bound = await isProtected(clients, caller.backend)
  if (bound) requireRightBeyondPolicies(caller, 'management.functions.write')
  const written = await managementOf(caller).functions.upsert(ddl, { bound })
  const { schema, name, definition } = written
  const announce = (emit: EmitChange) =>
    emit('schema_function_upserted', { function: `${schema}.${name}`, signature: definition.signature })
  await audited(changer, { operation: 'upsert_function', schema, object: name, announce }, written)
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
  const written = await managementOf(changer.caller).functions.drop(asked)
  const { schema, name, definition } = written
  const announce = (emit: EmitChange) =>
    emit('schema_function_dropped', { function: `${schema}.${name}`, signature: definition.signature })
  await audited(changer, { operation: 'drop_function', schema, object: name, announce }, written)
  return { schema_name: schema, function_name: name, signature: definition.signature }
}
