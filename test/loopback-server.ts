import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'
import type { Cleanup } from './embedded.ts'

export type LoopbackServer = { readonly url: string; readonly port: number }

/** Starts an HTTP server on a loopback address, which is closed after the file's tests or after the running test, or with `t`. */
export async function startLoopbackServer(
  listener: RequestListener,
  address = '127.0.0.1',
  t: Cleanup = { after },
): Promise<LoopbackServer> {
  const server = createServer(listener).listen(0, address)
  await new Promise((resolve) => server.once('listening', resolve))
  t.after(async () => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo // a TCP server's
  return { url: `http://${address}:${port}`, port }
}
