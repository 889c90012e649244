import net from 'node:net'
import type pg from 'pg'

/**
 * https://www.postgresql.org/docs/18/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS: no authentication, no answer. `over`: the server
 * has done it, or was not reached; from then on it meets nothing that is sent to the client.
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
  // Then the connection itself is broken off after the grace.
  socket.on('error', () => socket.pending && over())
  // It closes the connection when it has done it; what stands in between could take an end of ours for that.
  socket.on('end', over)
  socket.resume()
  socket.setTimeout(5_000, () => socket.destroy())
}

/** Not in pg's types: what the server told when the connection began. */
export const keysOf = (client: pg.Client) =>
  client as unknown as { readonly processID: number; readonly secretKey: number }
