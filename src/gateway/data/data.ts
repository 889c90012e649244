import { hash } from 'node:crypto'
import type { RowsAnswer, WriteAnswer } from '#databases/drivers/driver.ts'
import type { DataRequest, WritePlan } from '#databases/plan.ts'
import {
  type Body,
  type RequestOptions,
  readCount,
  readDelete,
  readFetch,
  readInsert,
  readUpdate,
} from '#databases/requests.ts'
import { touches } from '#databases/touches.ts'
import type { ClientOperation } from '#kernel/events.ts'
import { type Kernel, tell } from '#kernel/kernel.ts'
import { type GatewayCaller, lacksTables, requireTables } from '../access.ts'

export type Fetched = { readonly rows: RowsAnswer; readonly cacheKey: string }

/** Rows of one table and its relations. `event` is what webhooks hear of. */
export async function fetchRows(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  asked: { readonly event: 'gateway_fetch' | 'gateway_data'; readonly stripNulls: boolean },
): Promise<Fetched> {
  const { driver } = caller.client
  const request = readFetch(body, optionsOf(kernel, asked.stripNulls))
  requireTables(caller, [{ ...request.table, action: 'read' }])
  const plan = await driver.plan(request)
  requireTables(caller, touches(plan))
  const rows = await driver.select(plan)
  tell(kernel, asked.event, operation(caller, request, 0))
  return { rows, cacheKey: cacheKey(caller, request) }
}

export type Counted = { readonly count: number; readonly cacheKey: string; readonly milliseconds: number }

export async function countRows(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<Counted> {
  const began = performance.now()
  const { driver } = caller.client
  const request = readCount(body, optionsOf(kernel, false))
  requireTables(caller, [{ ...request.table, action: 'read' }])
  const plan = await driver.plan(request)
  const count = await driver.count(plan)
  return { count, cacheKey: cacheKey(caller, request), milliseconds: Math.round(performance.now() - began) }
}

export async function insertRows(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<WriteAnswer> {
  const { driver } = caller.client
  const request = readInsert(body, optionsOf(kernel, false))
  requireTables(caller, [{ ...request.table, action: 'write' }])
  const plan = permitted(caller, await driver.plan(request), body)
  return told(kernel, 'gateway_insert', caller, request, await driver.insert(plan))
}

export async function updateRows(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<WriteAnswer> {
  const { driver } = caller.client
  const request = readUpdate(body, optionsOf(kernel, false))
  requireTables(caller, [{ ...request.table, action: 'write' }])
  const plan = permitted(caller, await driver.plan(request), body)
  return told(kernel, 'gateway_update', caller, request, await driver.update(plan))
}

export async function deleteRows(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<WriteAnswer> {
  const { driver } = caller.client
  const request = readDelete(body, optionsOf(kernel, false))
  requireTables(caller, [{ ...request.table, action: 'delete' }])
  const plan = permitted(caller, await driver.plan(request), body)
  return told(kernel, 'gateway_delete', caller, request, await driver.delete(plan))
}

/**
 * Rows that a write gives back and that its caller did not write whole are read. A key that may write and not read gets
 * its write without them; if it asked for columns, it is refused.
 */
function permitted<P extends WritePlan>(caller: GatewayCaller, plan: P, { columns }: Body): P {
  const touched = touches(plan)
  const asksForRows = typeof columns === 'string' || (Array.isArray(columns) && typeof columns[0] === 'string')
  const lacks = lacksTables(caller, touched)
  const isSilent = lacks.length > 0 && !asksForRows && lacks.every(({ because }) => because === 'returning')
  requireTables(caller, isSilent ? touched.filter(({ because }) => because !== 'returning') : touched)
  return isSilent ? { ...plan, head: true } : plan
}

function told(
  kernel: Kernel,
  event: 'gateway_insert' | 'gateway_update' | 'gateway_delete',
  caller: GatewayCaller,
  request: DataRequest,
  answer: WriteAnswer,
): WriteAnswer {
  tell(kernel, event, operation(caller, request, answer.affected))
  return answer
}

const operation = ({ client, requestId }: GatewayCaller, { table }: DataRequest, rows: number): ClientOperation => ({
  client: client.name,
  requestId,
  table: `${table.schema}.${table.table}`,
  rows,
})

const optionsOf = ({ config }: Kernel, stripNulls: boolean): RequestOptions => ({
  limits: {
    columns: config.limits.columns,
    conditions: config.limits.conditions,
    nesting: config.limits.nesting,
    rows: config.limits.rows,
    maxRows: config.gateway.max_rows,
  },
  snakeCase: config.gateway.force_camel_case_to_snake_case,
  stripNulls,
})

/** Names a read: the same client and request give the same 64 hex digits. */
const cacheKey = ({ client }: GatewayCaller, request: DataRequest): string =>
  hash('sha256', `${client.name}\n${JSON.stringify(request)}`)
