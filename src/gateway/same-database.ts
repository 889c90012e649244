import type { Clients } from '#databases/clients/clients.ts'
import type { Backend } from '#databases/drivers/driver.ts'

/** Whether a client may have this database. */
export type MayHave = (clientName: string) => Promise<boolean>

/**
 * Guards compare databases (gateway.md 10): clients of different names may have the same one. A client that does not exist, does not answer
 * or has a backend without an identity may have any.
 */
export function clientsOfDatabase(clients: Clients, backend: Backend): MayHave {
  const identity = identityOf(backend)
  return async (clientName) => {
    const [one, other] = await Promise.all([identity, identityOf((await clients.find(clientName))?.driver)])
    return one === undefined || other === undefined || one === other
  }
}

const identityOf = async (backend: Backend | undefined): Promise<string | undefined> =>
  backend?.identity().catch(() => undefined)

/** The roles of callers of all clients that have this database and row-level security; only configured clients can. */
export async function callerRoles(clients: Clients, backend: Backend): Promise<readonly string[]> {
  const mayHave = clientsOfDatabase(clients, backend)
  const roles = await Promise.all(
    [...clients.configured.keys()].map(async (name) => {
      const { rowLevelSecurity } = (await clients.find(name)) ?? {}
      return rowLevelSecurity !== undefined && (await mayHave(name))
        ? [rowLevelSecurity.anonymousRole, rowLevelSecurity.signedInRole]
        : []
    }),
  )
  return [...new Set(roles.flat())]
}

/** Whether any client of this database has row-level security. */
export const isProtected = async (clients: Clients, backend: Backend): Promise<boolean> =>
  (await callerRoles(clients, backend)).length > 0
