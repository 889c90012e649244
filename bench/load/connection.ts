import { connect, type Socket } from 'node:net'
import type { Load, Request } from './load.ts'

/** A keep-alive connection that has one request under way at most. */
export type Connection = {
  send(request: Buffer): void
  end(): void
}

/** The status of an answer, or the code of an error, after which the connection is of no use. */
export type Outcome = number | string

/** What is known of the answer that is being received. */
type Answer = { head: string; status: number; left: number; tail: string }

const BUFFER = 65_536
const NO_ANSWER: Answer = { head: '', status: 0, left: 0, tail: '' }
/** Ends a chunked body. In front of it, JSON never has a line break of its own at such a place. */
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** node:http would cost three times as much processor time as the service's part of a cached answer, on the same cores. */
export function openConnection(url: URL, done: (outcome: Outcome) => void): Promise<Connection> {
  const { promise, resolve, reject } = Promise.withResolvers<Connection>()
  let answer = { ...NO_ANSWER }
  const received = (length: number, buffer: Uint8Array) => {
    read(answer, Buffer.from(buffer.buffer, buffer.byteOffset, length))
    if (!isComplete(answer)) return true
    const { status } = answer
    answer = { ...NO_ANSWER }
    done(status)
    return true
  }
  const onread = { buffer: Buffer.allocUnsafe(BUFFER), callback: received }
  const socket: Socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true, onread })
  let isOpen = false
  socket.on('connect', () => {
    isOpen = true
    resolve({ send: (request) => void socket.write(request), end: () => socket.destroy() })
  })
  socket.on('error', (error) => reject(error))
  socket.on('close', (hadError) => isOpen && done(hadError ? 'connection lost' : 'connection closed'))
  return promise
}

function read(answer: Answer, bytes: Buffer): void {
  if (answer.status !== 0) {
    answer.left -= bytes.length
    answer.tail = (
      answer.tail + bytes.toString('latin1', Math.max(0, bytes.length - LAST_CHUNK.length))
    ).slice(-LAST_CHUNK.length)
    return
  }
  answer.head += bytes.toString('latin1')
  const end = answer.head.indexOf('\r\n\r\n')
  if (end < 0) return
  answer.status = Number(answer.head.slice(9, 12))
  answer.left = lengthOf(answer.head.slice(0, end + 2), answer.status) - (answer.head.length - end - 4)
  answer.tail = answer.head.slice(-LAST_CHUNK.length)
}

/** Infinity for a chunked body. */
function lengthOf(head: string, status: number): number {
  const [, length] = /\r\ncontent-length: *(\d+)\r\n/i.exec(head) ?? []
  if (length !== undefined) return Number(length)
  return status === 204 || status === 304 ? 0 : Number.POSITIVE_INFINITY
}

const isComplete = ({ status, left, tail }: Answer): boolean =>
  status !== 0 && (left === 0 || (left === Number.POSITIVE_INFINITY && tail === LAST_CHUNK))

/** The bytes of a request, which are made before the first one is sent. */
export function bytesOf({ url, headers = {} }: Load, request: Request): Buffer {
  const { method = 'GET', path, body } = request
  const all = {
    host: new URL(url).host,
    ...headers,
    ...request.headers,
    ...(method !== 'GET' && { 'content-length': `${Buffer.byteLength(body ?? '')}` }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`)
}
