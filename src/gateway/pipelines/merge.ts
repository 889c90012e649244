import type { PipelineDefinition, Sink, Source, Transform } from './definition.ts'

/** A pipeline with all of its parts, which may lack members. */
export type MergedPipeline = {
  readonly source: Omit<Source, 'view_name'>
  readonly transform: Transform
  readonly sink: Sink
}

/** Members of a request replace the same members of the named pipeline (gateway.md 9). Lists and aliases are replaced as a whole. */
export function mergePipelines(
  named: PipelineDefinition | undefined,
  inline: PipelineDefinition,
): MergedPipeline {
  return {
    source: over(withTableName(named?.source), withTableName(inline.source)),
    transform: over(named?.transform, inline.transform),
    sink: over(named?.sink, inline.sink),
  }
}

/** One spelling, so that `view_name` of a request replaces `table_name` of the named pipeline. */
function withTableName({ view_name, ...source }: Source = {}): Omit<Source, 'view_name'> {
  return view_name === undefined || source.table_name !== undefined
    ? source
    : { ...source, table_name: view_name }
}

/** Absent members replace nothing. */
function over<T extends object>(below: T | undefined, above: T | undefined): T {
  const given = Object.entries(above ?? {}).filter(([, value]) => value !== undefined && value !== null)
  // The members of `below`, with some of those of `above`, which has the same type.
  return { ...below, ...Object.fromEntries(given) } as T
}
