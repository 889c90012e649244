import type { Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { Config } from '../../config/config.ts'
import type { Failure } from '../../errors.ts'
import type { App } from '../app.ts'
import { hasAddress } from '../client-address.ts'
import { edge, retryAfter } from '../failures.ts'
import { createConnectionLimits } from './connection-limits.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** From now on, each answer is the last on its connection. New connections are accepted. */
    drain(): void
    /** Accepts no more connections, and ends those without a request. Requests on the others go on. */
    stopListening(): Promise<void>
  }
}

export type Connections = {
  /** A request on this connection is complete up to its headers. Returns the refusal of a connection, or of a request, that is one too many. */
  began(socket: Socket): Failure | undefined
  /** Its answer is sent, or the caller is gone. */
  ended(socket: Socket): void
  /** Whether this connection is in no way unusual: no other request, nothing that waits to be sent, and the next answer is not the last one. */
  isFree(socket: Socket): boolean
  /** Whether the next answer is the last one of this connection. */
  isLast(socket: Socket): boolean
}

type Connection = {
  readonly since: number
  /** Requests without a complete answer. */
  requests: number
  /** Bytes that had arrived with the last answer. */
  read: number
  /** One too many: its first request is answered with 503. */
  readonly isRefused: boolean
}

/** Time for the first request of a new connection, milliseconds. */
const FIRST_REQUEST = 1_000
/** Time in which a client closes a connection that has been ended, milliseconds. */
const LINGER = 2_000
/** Between looks at the connections that are left, milliseconds. */
const LOOK = 50
/** Turns of the event loop in which waiting connections are accepted, one in each (libuv 1.52). */
const MAX_TURNS = 1_000

/** Connections beyond the limits that are told so at the same time; more are closed without an answer. */
const MAX_REFUSED = 32

const TOO_MANY = () =>
  edge('service_unavailable', {
    message: 'There are too many connections, in all or from this address; try again shortly',
    headers: retryAfter(1),
  })

/**
 * Requests of one connection without an answer. A client may send thousands at once and read nothing: a packet of 64 KiB would ask for
 * gigabytes of answers.
 */
const MAX_PIPELINED = 32
/** A connection with more of them is closed at once: refusals that wait behind unread answers take memory, too. */
const FLOOD = 256

const TOO_MANY_REQUESTS = () =>
  edge('service_unavailable', {
    message: `There are more than ${MAX_PIPELINED} requests without an answer on this connection`,
    // Earlier requests are answered first.
    headers: { ...retryAfter(1), connection: 'close' },
  })

/** Keeps account of the connections, to end them without the loss of a request. */
export function addConnections(app: App, config: Config): Connections {
  const open = new Map<Socket, Connection>()
  const limits = createConnectionLimits(config, (socket) => open.get(socket)?.requests === 0)
  let refused = 0
  let accepted = 0
  let isDraining = false
  let isEnding = false
  app.server.on('connection', (socket: Socket) => {
    accepted++
    // Reset before it was accepted: its requests would count for no address.
    if (!hasAddress(socket)) return void socket.destroy()
    const isRefused = !limits.admit(socket)
    if (isRefused && refused >= MAX_REFUSED) return void socket.destroy()
    open.set(socket, { since: performance.now(), requests: 0, read: 0, isRefused })
    const timer = isRefused ? setTimeout(() => socket.destroy(), LINGER).unref() : undefined
    if (isRefused) refused++
    socket.once('close', () => {
      open.delete(socket)
      if (isRefused) refused--
      clearTimeout(timer)
    })
  })

  /** Ends connections without a request, until none is left. Data that had arrived before has been read in the turn. */
  async function endIdle(): Promise<void> {
    if (isEnding) return
    isEnding = true
    for (await turn(); open.size > 0; await sleep(LOOK))
      for (const [socket, connection] of open) if (isIdle(socket, connection)) end(socket)
  }

  // Node and Fastify call it. Node's own resets a connection whose request has arrived and has not been read.
  app.server.closeIdleConnections = () => void endIdle()
  app.decorate('drain', () => {
    isDraining = true
  })
  app.decorate('stopListening', async () => {
    isDraining = true
    // A connection that the system has established and Node has not accepted would be reset.
    for (let turns = 0, known = -1; known !== accepted && turns < MAX_TURNS; turns++) {
      known = accepted
      await turn()
    }
    app.server.close()
  })
  return {
    began(socket) {
      const connection = open.get(socket)
      if (connection === undefined) return undefined
      connection.requests++
      if (connection.isRefused) return TOO_MANY()
      if (connection.requests > FLOOD) socket.destroy()
      return connection.requests > MAX_PIPELINED ? TOO_MANY_REQUESTS() : undefined
    },
    ended(socket) {
      const connection = open.get(socket)
      if (connection === undefined) return
      connection.requests--
      connection.read = socket.bytesRead
    },
    isFree(socket) {
      const connection = open.get(socket)
      const isKnown = connection !== undefined && !connection.isRefused && connection.requests === 0
      return isKnown && !isDraining && socket.writable && socket.writableLength === 0
    },
    isLast: (socket) => isDraining || open.get(socket)?.isRefused === true,
  }
}

/** Neither a request, nor the beginning of one. */
const isIdle = (socket: Socket, { since, requests, read }: Connection): boolean =>
  requests === 0 &&
  !socket.writableEnded &&
  socket.bytesRead === read &&
  (read > 0 || performance.now() - since > FIRST_REQUEST)

/** Not `destroy`: a client that is just sending would be told of a reset, and not of an orderly end. */
function end(socket: Socket): void {
  socket.end()
  setTimeout(() => socket.destroy(), LINGER).unref()
}
