import { rememberClient } from '#databases/clients/realtime-store.ts'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { TableName } from '#databases/request/request.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { type Changer, type EmitChange, runAudited } from './change.ts'
import { findTable } from './tables.ts'

export async function isRealtime(caller: GatewayCaller, at: TableName): Promise<boolean> {
  const feed = requireAbility(caller.backend, 'changes')
  await findTable(caller, at)
  const live = await feed.tables()
  return live.some(({ table }) => table.schema === at.schema && table.table === at.table)
}

/** A table that already is as asked is written to the log all the same, without a statement. */
export async function setRealtime(changer: Changer, at: TableName, enabled: boolean): Promise<void> {
  const feed = requireAbility(changer.caller.backend, 'changes')
  await findTable(changer.caller, at)
  if (enabled) await rememberClient(changer.kernel, changer.caller.client.name)
  const ddl = await (enabled ? feed.enable(at) : feed.disable(at))
  const { schema, table } = at
  const event = { table: `${schema}.${table}`, operations: ['realtime'] }
  const announce = (emit: EmitChange) => emit('schema_table_altered', event)
  await runAudited(changer, { operation: 'realtime', schema, object: table, table, announce }, ddl)
}
