import { requireAbility } from '#databases/drivers/abilities.ts'
import type { TableDefinition } from '#databases/drivers/driver.ts'
import { recordAct } from '#kernel/audit/record-act.ts'
import { emit, type Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller.ts'
import type { AuditLog } from './audit.ts'
import { OPERATIONS } from './operations.ts'

export async function capabilities({ backend }: GatewayCaller) {
  const { management } = backend
  // A driver without this ability can read the schema, but not change it.
  const operations = Object.entries(OPERATIONS).filter(
    ([, { method }]) => method === 'GET' || management !== undefined,
  )
  return {
    backend: `${backend.name} ${await backend.probe()}`,
    retention_mutation_supported: false,
    replication_mutation_supported: false,
    supported_operations: operations.map(([name]) => name),
    required_rights: operations.map(([operation, { right }]) => ({ operation, required_right: right })),
    allowed_index_methods: [...(management?.indexMethods ?? [])],
    allowed_column_data_types: [...(management?.columnDataTypes ?? [])],
  }
}

/** Creates a table and returns its definition. Logged before and after; an existing name gets 409. */
export async function createManagedTable(
  kernel: Kernel,
  caller: GatewayCaller,
  audit: AuditLog,
  asked: TableDefinition,
) {
  const { backend } = caller
  const management = requireAbility(backend, 'management')
  const statements = await management.createTable(asked)
  const { schema, table } = asked
  const act = {
    requestId: caller.requestId,
    actorKeyId: caller.grant.kind === 'key' ? caller.grant.key.id : '',
    client: caller.client.name,
    operation: 'create_table',
    schema,
    object: table,
    objectType: 'table',
    statement: statements.join(';\n'),
  } as const
  await audit.around(act, () => management.run(statements))
  await recordAct(kernel, 'schema.changed', {
    targetId: `${schema}.${table}`,
    clientName: caller.client.name,
    details: { operation: act.operation },
  })
  await emit(kernel, 'schema_table_created', {
    client: caller.client.name,
    request_id: caller.requestId,
    table: `${schema}.${table}`,
  })
  return describeTable(caller, schema, table)
}

async function describeTable({ backend }: GatewayCaller, schema: string, table: string) {
  const found = (await backend.catalogue()).find(schema, table)
  const columns = [...(found?.columns.values() ?? [])].map((column) => ({
    name: column.name,
    data_type: column.type,
    nullable: column.nullable,
    default_expression: column.fallback ?? null,
    primary_key: found?.primaryKey.includes(column.name) ?? false,
  }))
  return { schema_name: schema, table_name: table, columns }
}
