import type { TableName } from '#databases/request/request.ts'
import { readTable } from '#databases/request/table-name.ts'
import type { MayHave } from '../same-database.ts'
import { bodyOf, type PipelineDefinition, type Sink, type Source, tableNameOf } from './definition.ts'

/** The pipelines of the file, by name. */
export type NamedPipelines = ReadonlyMap<string, PipelineDefinition>

/** The named pipelines of this process. A run keeps the definition that it began with. */
export type PipelineRegistry = {
  find(name: string): PipelineDefinition | undefined
  all(): NamedPipelines
  replace(pipelines: NamedPipelines): void
}

export function createPipelineRegistry(first: NamedPipelines): PipelineRegistry {
  let current = first
  return {
    find: (name) => current.get(name),
    all: () => current,
    replace: (pipelines) => {
      current = pipelines
    },
  }
}

/** Whether a pipeline of the file reads or writes one of these tables on this database. Without a client, it does on that of its caller. */
export async function pipelinesNaming(
  pipelines: NamedPipelines,
  mayHave: MayHave,
  tables: readonly TableName[],
): Promise<boolean> {
  const parts = [...pipelines.values()].flatMap(({ source, sink }) => [source, sink])
  const naming = parts.filter((part) => part !== undefined && tables.some((table) => names(part, table)))
  const found = await Promise.all(naming.map((part) => part?.client === undefined || mayHave(part.client)))
  return found.includes(true)
}

function names(part: Source | Sink, { schema, table }: TableName): boolean {
  if (tableNameOf(part) === undefined) return false
  const named = readTable(bodyOf(part))
  return named.schema === schema && named.table === table
}
