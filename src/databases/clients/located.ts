import type { Client } from './client.ts'

/** A client whose database was compared with that of the logging client (gateway.md 10). */
export type LocatedClient = Client & {
  /** Its database has the log and audit tables: it can only be read, and only with the admin key or a key bound to it. */
  readonly isLogging: boolean
}

type ClientLocation = {
  /** Throws the failure of a database that does not tell which one it is. */
  locate(client: Client): Promise<LocatedClient>
  /** The client that `locate` was given. */
  original(client: Client): Client
}

type LoggingDatabase = {
  readonly client: Client
  readonly identity: () => Promise<string | undefined>
}

/** `retain` keeps the driver of a client open, which another one may replace meanwhile. */
export function createClientLocation(
  logging: LoggingDatabase | undefined,
  retain: (client: Client) => (answered: boolean) => void,
): ClientLocation {
  const located = new WeakMap<Client, LocatedClient>()
  const originals = new WeakMap<Client, Client>()

  async function isLogging(client: Client): Promise<boolean> {
    const { name, driver } = client
    // Only a client of the same driver can have the same database.
    if (logging === undefined || logging.client.driver.name !== driver.name) return false
    if (logging.client.name === name) return true
    const release = retain(client)
    try {
      const [log, data] = await Promise.all([logging.identity(), driver.identity()])
      // Without identities, by the rights of a server's operator, names decide.
      return data !== undefined && data === log
    } finally {
      release(false)
    }
  }

  function remember(client: Client, isLogging: boolean): LocatedClient {
    const found = located.get(client) ?? { ...client, isLogging, isCached: client.isCached && !isLogging }
    located.set(client, found)
    originals.set(found, client)
    return found
  }

  return {
    locate: async (client) => located.get(client) ?? remember(client, await isLogging(client)),
    original: (client) => originals.get(client) ?? client,
  }
}
