import net from 'node:net'
import type pg from 'pg'

/**
 * https://www.postgresql.org/docs/18/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS: no authentication, no answer. `over` is called
 * when the server has processed the request or was not reached; after that it cannot hit a later statement of the client.
 */
export function cancel(client: pg.Client, over = () => {}): void {
  const { processID, secretKey } = keysOf(client)
  const message = Buffer.alloc(16)
  message.writeInt32BE(16, 0)
  message.writeInt32BE(80_877_102, 4)
  message.writeInt32BE(processID, 8)
  message.writeInt32BE(secretKey, 12)
  const { host, port } = client
  const socket = net.connect(
    host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port },
    () => socket.write(message),
  )
  // Then the connection itself is closed after the grace period.
  socket.on('error', () => socket.pending && over())
  // The server closes the connection when it is done. We do not close it, because a proxy in between could take that as the server's end.
  socket.on('end', over)
  socket.resume()
  socket.setTimeout(5_000, () => socket.destroy())
}

/** Missing in pg's types: the key that the server sent when the connection began. */
export const keysOf = (client: pg.Client) =>
  client as unknown as { readonly processID: number; readonly secretKey: number }
