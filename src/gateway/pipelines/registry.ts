import type { PipelineDefinition } from './definition.ts'

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
