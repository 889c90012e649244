import { connect } from 'node:net'
import { type Mock, mock } from 'node:test'
import type { TestService } from './harness.ts'

/** Looks at how a service answers: by its fast path, or by Fastify. */
export type WatchedPaths = {
  /** Requests that have reached Fastify so far. */
  slow(): number
  /** Leaves all requests to Fastify while the work runs. */
  slowly<T>(work: () => Promise<T>): Promise<T>
}

/** For tests that ask one request after the other. */
export function watchPaths({ service: { app } }: TestService): WatchedPaths {
  const { server } = app
  const routing: Mock<typeof app.routing> = mock.method(app, 'routing')
  const [listener] = server.listeners('request') as Parameters<typeof server.on<'request'>>[1][]
  return {
    slow: () => routing.mock.callCount(),
    async slowly(work) {
      server
        .removeAllListeners('request')
        .on('request', (request, response) => app.routing(request, response))
      try {
        return await work()
      } finally {
        server.removeAllListeners('request')
        if (listener) server.on('request', listener)
      }
    },
  }
}

/** A plain get-session, which the fast path answers if it can. */
export const getBy = (token: string): string =>
  `GET /api/auth/get-session HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`

/** Whether the service answers to one request with 200 and by its fast path. */
export async function isFast(t: TestService, { slow }: WatchedPaths, request: string): Promise<boolean> {
  const before = slow()
  const [first, ...others] = statusesIn(await bytesFor(t, request))
  return first === 200 && slow() === before + others.length
}

export const statusesIn = (bytes: string): readonly number[] =>
  [...bytes.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

/** Ends the connection with its answer. */
const LAST = 'GET /api/auth/ok HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'

/**
 * All bytes that the service sends to these and to a last request on one connection, as latin1. The id and the time of an answer are left
 * out.
 */
export async function bytesFor({ url }: Pick<TestService, 'url'>, requests: string): Promise<string> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', noDelay: true })
  let bytes = ''
  socket.setEncoding('latin1').on('data', (part) => {
    bytes += part
  })
  // The service may end the connection before it has read the last request.
  socket.on('error', () => {})
  socket.write(`${requests}${LAST}`, 'latin1')
  await new Promise((resolve) => socket.once('close', resolve))
  return bytes
    .replaceAll(/(?<=^x-request-id: |"request_id":")[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/gm, '…')
    .replaceAll(/^Date: .*/gm, 'Date: …')
}
