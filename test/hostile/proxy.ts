import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A way to a database that can be cut, or go silent, and come back. */
export type Proxy = {
  /** The database's URL, by this way. */
  readonly url: string
  /** Ends every connection. */
  drop(): void
  /** And refuses new ones. */
  cut(): Promise<void>
  /** Lets nothing through any more, in neither direction, and closes nothing. */
  freeze(): void
  /** As if nothing had been; what was frozen goes on. */
  mend(): Promise<void>
  close(): Promise<void>
}

/** `lingers`: the caller's side stays open when the database's has closed. `delay`: milliseconds that bytes are under way. */
export async function proxyTo(databaseUrl: string, { lingers = false, delay = 0 } = {}): Promise<Proxy> {
  const target = new URL(databaseUrl)
  const sockets = new Set<Socket>()
  let isFrozen = false
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket)
      if (isFrozen) socket.pause()
      const pass = (bytes: Buffer) => void other.write(bytes)
      socket.on('data', delay === 0 ? pass : (bytes) => void setTimeout(pass, delay, bytes))
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        if (socket === near || !lingers) other.destroy()
      })
    }
  })
  const listen = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    // An object for every server that listens on a port.
    return (server.address() as AddressInfo).port
  }
  const port = await listen(0)
  const drop = () => {
    for (const socket of sockets) socket.destroy()
  }
  const cut = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve))
    drop()
    await closed
  }
  return {
    url: Object.assign(new URL(databaseUrl), { hostname: '127.0.0.1', port: String(port) }).href,
    drop,
    cut,
    freeze() {
      isFrozen = true
      for (const socket of sockets) socket.pause()
    },
    async mend() {
      isFrozen = false
      for (const socket of sockets) socket.resume()
      if (!server.listening) await listen(port)
    },
    close: () => (server.listening ? cut() : Promise.resolve()),
  }
}
