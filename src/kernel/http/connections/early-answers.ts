import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { App } from '../surface.ts'
import type { Connections } from './connections.ts'

/** Time in which the rest of a body is read after the last answer, milliseconds. */
const LINGER = 2_000

/**
 * An answer before the request's body is complete is the last one on its connection (RFC 9112 section 9.6): the client may
 * never send the rest, and would get a second answer at the timeout of the request. So is one that is given while the service
 * drains, or the drain would wait for `keepAliveTimeout`.
 */
export function endConnections(app: App, { isLast }: Connections): void {
  app.addHook('onRequest', function leaveEndedConnection(request, reply, done) {
    const { socket } = request.raw
    if (!socket.writableEnded) return done()
    // Data after the last answer is no request.
    reply.hijack()
    socket.destroy()
  })
  app.addHook('onSend', function endConnection(request, reply, _payload, done) {
    const { raw } = request
    if (isLast(raw.socket)) reply.header('connection', 'close')
    if (!isArriving(raw)) return done()
    // The end of the body may have arrived without having been parsed.
    setImmediate(() => {
      if (isArriving(raw)) {
        reply.header('connection', 'close')
        lingerOn(raw.socket)
      }
      done()
    })
  })
}

/** Whether a part of the request's body is missing. */
export const isArriving = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined)

/** Reads on for a while: closed at once, a connection with unread data is reset, and the client may lose the answer. Node calls `destroySoon` after the last answer. */
function lingerOn(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => socket.destroy(), LINGER).unref()
  }
}
