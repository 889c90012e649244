import { VERSION } from '#kernel/version.ts'
import type { State } from './health.ts'
import type { Mirror } from './mirrors.ts'

/** Health of this installation and its mirrors (gateway.md 16). Open to all, so it names no client. */
type ClusterHealth = {
  readonly message: string
  readonly version: string
  readonly athena_api: string
  readonly athena_deadpool: string
  readonly athena_scylladb: string
  readonly cargo_toml_version: string
  readonly mirrors: Mirror[]
}

/** `states`: of the components of this service. */
export function clusterHealth(states: readonly State[], mirrors: Mirror[]): ClusterHealth {
  const byDriver = Map.groupBy(states, ({ driver }) => driver)
  const isDegraded = [...states, ...mirrors].some(({ status }) => status === 'offline')
  return {
    message: isDegraded ? 'A part of the cluster is offline' : 'The cluster is online',
    version: VERSION,
    athena_api: VERSION,
    athena_deadpool: stateOf(byDriver.get('postgresql')),
    athena_scylladb: stateOf(byDriver.get('scylladb')),
    cargo_toml_version: VERSION,
    mirrors,
  }
}

function stateOf(states: readonly State[] | undefined): string {
  if (states === undefined) return 'not configured'
  return states.every(({ status }) => status === 'online') ? 'online' : 'offline'
}
