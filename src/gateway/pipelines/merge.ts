import { type PipelineDefinition, type Sink, type Source, type Transform, tableNameOf } from './definition.ts'

/** A pipeline with all of its parts, which may lack members. */
export type MergedPipeline = {
  readonly source: WithTableName<Source>
  readonly transform: Transform
  readonly sink: WithTableName<Sink>
}

/** Members of a request replace the same members of the named pipeline (gateway.md 9). Lists and aliases are replaced as a whole. */
export function mergePipelines(
  named: PipelineDefinition | undefined,
  inline: PipelineDefinition,
): MergedPipeline {
  return {
    source: over(withTableName(named?.source), withTableName(inline.source)),
    transform: over(named?.transform, inline.transform),
    sink: over(withTableName(named?.sink), withTableName(inline.sink)),
  }
}

type WithTableName<Part> = Omit<Part, 'table' | 'view_name'>

/** One spelling, so that an alias in a request replaces `table_name` of the named pipeline. */
function withTableName<Part extends Source | Sink>(part: Part | undefined): WithTableName<Part> | undefined {
  if (part === undefined) return undefined
  const { table: _, view_name: __, ...rest } = part
  const table_name = tableNameOf(part)
  return { ...rest, ...(table_name !== undefined && { table_name }) }
}

/** Absent members replace nothing. */
function over<T extends object>(below: T | undefined, above: T | undefined): T {
  const given = Object.entries(above ?? {}).filter(([, value]) => value !== undefined && value !== null)
  // The members of `below`, with some of those of `above`, which has the same type.
  return { ...below, ...Object.fromEntries(given) } as T
}
