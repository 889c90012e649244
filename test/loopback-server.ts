import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

export type LoopbackServer = { readonly url: string; readonly port: number }

/** Starts an HTTP server on a loopback address, which is closed after the file's tests or after the running test. */
export async function startLoopbackServer(
  listener: RequestListener,
  address = '127.0.0.1',
): Promise<LoopbackServer> {
  const server = createServer(listener).listen(0, address)
  await new Promise((resolve) => server.once('listening', resolve))
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo // a TCP server's
  return { url: `http://${address}:${port}`, port }
}
