import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { App } from './surface.ts'

/** How long what a client still sends is read behind the last answer, milliseconds. */
const LINGER = 2_000

/**
 * An answer that comes before the request's body is there whole is the last on its connection (RFC 9112 section 9.6): the client may
 * never send the rest, and would get a second answer when the time for the request is over. So is one that is given while the service
 * drains, or the drain would wait for `keepAliveTimeout`.
 */
export function endConnections(app: App): void {
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
  })
  app.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw
    if (!socket.writableEnded) return done()
    // What comes behind the last answer is no request any more.
    reply.hijack()
    socket.destroy()
  })
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { raw } = request
    if (isClosing) reply.header('connection', 'close')
    if (!isArriving(raw)) return done()
    // The end of the body may be here already, and the parser has yet to come to it.
    setImmediate(() => {
      if (isArriving(raw)) {
        reply.header('connection', 'close')
        lingerOn(raw.socket)
      }
      done()
    })
  })
}

/** The request has a body of which something is missing. */
export const isArriving = ({ complete, headers }: IncomingMessage): boolean =>
  !complete && (Number(headers['content-length'] ?? 0) > 0 || headers['transfer-encoding'] !== undefined)

/** Closed at once, a connection with unread bytes is reset, and the client may lose the answer. Node calls `destroySoon` behind the last answer. */
function lingerOn(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end()
    setTimeout(() => socket.destroy(), LINGER).unref()
  }
}
