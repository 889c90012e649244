import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** A response as read from the socket. */
export type Reply = {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
}

/** Timeout in milliseconds. */
const PATIENCE = 60_000

/**
 * Sends raw bytes, valid HTTP or not, and reads one response. Returns undefined if the server closes the connection without a response.
 */
export function exchange(port: number, request: readonly (Buffer | string)[]): Promise<Reply | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply | undefined>()
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const chunks: Buffer[] = []
  let length = 0
  let needed = 0
  socket.setTimeout(PATIENCE, () => {
    socket.destroy()
    reject(new Error(`no response within ${PATIENCE} ms to ${shown(request)}`))
  })
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    length += chunk.length
    if (length < needed) return
    const reply = parsedReply(Buffer.concat(chunks))
    if (typeof reply === 'number') {
      needed = reply
      return
    }
    resolve(reply)
    socket.destroy()
  })
  // The server may stop reading before everything is sent. A response that came before counts.
  socket.on('error', () => {})
  socket.on('close', () => resolve(undefined))
  for (const part of request) socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
  return promise
}

/** Sends the bytes, then closes the connection after they have arrived. */
export async function breakOff(port: number, request: readonly (Buffer | string)[]): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  for (const part of request) socket.write(part)
  await sleep(50)
  socket.destroy()
  await sleep(50)
}

/** The bytes of one request, which asks to close the connection afterwards. */
export function requestBytes(asked: {
  readonly method: string
  readonly path: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body?: Buffer
}): (Buffer | string)[] {
  const { method, path, headers, body } = asked
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'host: localhost',
    'connection: close',
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : [`content-length: ${body.length}`]),
  ]
  return [`${lines.join('\r\n')}\r\n\r\n`, ...(body === undefined ? [] : [body])]
}

function shown(request: readonly (Buffer | string)[]): string {
  return request.map((part) => part.toString('latin1').slice(0, 500)).join('')
}

/** Parses a response. Returns the number of bytes needed if it is incomplete. */
function parsedReply(bytes: Buffer): Reply | number {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return bytes.length + 1
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(first.split(' ')[1])
  const begin = end + 4
  // Skip 100 Continue.
  if (status < 200) return parsedReply(bytes.subarray(begin))
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  if (headers.get('transfer-encoding') === 'chunked') {
    const body = dechunked(bytes.subarray(begin))
    return body === undefined ? bytes.length + 1 : { status, headers, text: body.toString('utf8') }
  }
  const all = begin + Number(headers.get('content-length') ?? 0)
  return bytes.length < all ? all : { status, headers, text: bytes.toString('utf8', begin, all) }
}

function dechunked(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const line = bytes.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = Number.parseInt(bytes.subarray(at, line).toString('latin1'), 16)
    const begin = line + 2
    if (bytes.length < begin + size + 2) return undefined
    if (size === 0) return Buffer.concat(parts)
    parts.push(bytes.subarray(begin, begin + size))
    at = begin + size + 2
  }
}
