import type { LocatedClient } from '#databases/clients/clients.ts'
import type { Failure } from '#kernel/errors.ts'
import { fail } from './errors.ts'

/** The client has no row-level security; what gives it to the client is named. */
export function rowLevelSecurityOff({
  name,
  source,
  isUndecided = false,
}: Pick<LocatedClient, 'name' | 'source' | 'isUndecided'>): Failure {
  const { hint, details } = decidingSetting(name, source, true)
  return fail('row_level_security_off', {
    hint: isUndecided ? `PUT /admin/clients/${name}/row-level-security switches it on.` : hint,
    details: { ...details, is_undecided: isUndecided },
  })
}

/** Where row-level security of a client is decided. */
export function decidingSetting(name: string, source: LocatedClient['source'], enabled: boolean) {
  const setting = `clients.${name}.row_level_security.enabled`
  return {
    hint:
      source === 'config'
        ? `Set ${setting}: ${enabled} in gatehouse.yaml, and start the service again.`
        : `Only clients of the configuration have it: give this one its url and ${setting}: true in gatehouse.yaml, and start the service again.`,
    details: { setting },
  }
}
