import type { Clients } from '#databases/clients/clients.ts'
import type { Backend } from '#databases/drivers/driver.ts'

/** Whether a client may have this database. */
export type MayHave = (clientName: string) => Promise<boolean>

/**
 * Guards compare databases (gateway.md 10): clients of different names may have the same one. A client that does not exist, does not answer
 * or has a backend without an identity may have any.
 */
export function clientsOfDatabase(clients: Clients, backend: Backend): MayHave {
  const own = identityOf(backend)
  return async (clientName) => {
    const [one, other] = await Promise.all([own, identityOf((await clients.find(clientName))?.driver)])
    return one === undefined || other === undefined || one === other
  }
}

const identityOf = async (backend: Backend | undefined): Promise<string | undefined> =>
  backend?.identity().catch(() => undefined)

/** Whether any client of this database has row-level security; only configured clients can. */
export async function isProtected(clients: Clients, backend: Backend): Promise<boolean> {
  const mayHave = clientsOfDatabase(clients, backend)
  const guarded = [...clients.configured.values()].filter(
    ({ rowLevelSecurity }) => rowLevelSecurity !== undefined,
  )
  const found = await Promise.all(guarded.map(({ name }) => mayHave(name)))
  return found.includes(true)
}
