import { grantsFixed } from '#kernel/rights.ts'
import { rightsInRole } from '../caller/caller-rights.ts'
import type { Grant } from '../caller/grant.ts'
import { type PipelineDefinition, type Sink, type Source, tableNameOf } from './definition.ts'
import type { NamedPipelines } from './registry.ts'

/** The pipelines of the file, sorted by name. Those that name a client which the key or the session may not use are left out. */
export function listTemplates(pipelines: NamedPipelines, grant: Grant) {
  return [...pipelines]
    .filter(([, definition]) => clientsOf(definition).every((client) => mayUse(grant, client)))
    .map(([name, definition]) => templateOf(name, definition))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

const clientsOf = ({ source, sink }: PipelineDefinition): readonly string[] =>
  [source?.client, sink?.client].filter((client) => client !== undefined)

function mayUse(grant: Grant, client: string): boolean {
  if (grant.kind === 'session')
    return grantsFixed(rightsInRole(grant, client), 'pipelines.run', { isBound: true, hasPolicies: false })
  if (grant.kind !== 'key') return grant.kind === 'admin'
  const { clientName, clientOverrides } = grant.key
  return clientName === client || clientOverrides.includes('*') || clientOverrides.includes(client)
}

function templateOf(name: string, definition: PipelineDefinition) {
  const { description, source, transform = {}, sink } = definition
  return {
    name,
    description: description ?? null,
    source_table: tableOf(source),
    sink_table: tableOf(sink),
    has_transform: Object.keys(transform).length > 0,
    source_client: source?.client ?? null,
    sink_client: sink?.client ?? null,
    definition,
  }
}

function tableOf(part: Source | Sink = {}): string | null {
  const name = tableNameOf(part)
  if (name === undefined) return null
  return part.schema_name === undefined ? name : `${part.schema_name}.${name}`
}
