import { permissionText } from '#identity/permissions.ts'
import type { Access } from '#kernel/http/access.ts'
import type { AuthAccess } from '../door/access.ts'
import type { Demand } from './roles.ts'

/**
 * Access of routes on an organization. Its name is in the body, which is not read yet, so that the route lets every session in and the
 * verb's first lines decide the rest.
 */
export function createOrganizationAccess({ signedIn }: AuthAccess) {
  const named = (name: string): Access => ({ ...signedIn, name })
  return {
    signedIn,
    member: named('member'),
    recipient: named('recipient'),
    memberWith({ permissions, refusal }: Demand): Access {
      const access = named(`member with ${permissionText(permissions)}`)
      return { ...access, failures: [...(access.failures ?? []), refusal] }
    },
    recipientOr: (asked: string): Access => named(`recipient, or member with ${asked}`),
  }
}

export type OrganizationAccess = ReturnType<typeof createOrganizationAccess>
