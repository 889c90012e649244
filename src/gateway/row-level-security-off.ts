import type { LocatedClient } from '#databases/clients/clients.ts'
import type { Failure } from '#kernel/errors.ts'
import { fail } from './errors.ts'

/** The client has no row-level security; the setting that gives it is named. */
export function rowLevelSecurityOff({ name, source }: Pick<LocatedClient, 'name' | 'source'>): Failure {
  const setting = `clients.${name}.row_level_security.enabled`
  return fail('row_level_security_off', {
    hint:
      source === 'config'
        ? `Set ${setting}: true in gatehouse.yaml, and start the service again.`
        : `Only clients of the configuration have it: give this one its url and ${setting}: true in gatehouse.yaml, and start the service again.`,
    details: { setting },
  })
}
