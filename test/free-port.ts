import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that Linux gives to outgoing connections and to servers that ask for any port, 32,768 and above. */
const PORTS = [20_000, 32_000] as const

/** Finds a port for a server that starts later. None of the connections and servers of other tests can take it until then. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...PORTS)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  const { promise, resolve } = Promise.withResolvers<boolean>()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
