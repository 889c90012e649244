import type { GatewayCaller } from '../caller/caller.ts'
import { OPERATIONS } from './operations.ts'

export async function capabilities({ backend }: GatewayCaller) {
  const { management } = backend
  // A driver without this ability can show its structure (/schema), but not change it.
  const operations = Object.entries(OPERATIONS).filter(
    ([name]) => name === 'capabilities' || management !== undefined,
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
