import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { RouteOptions } from 'fastify'
import type { Failure } from '../../errors.ts'
import type { Kernel } from '../../kernel.ts'
import { corsHeaders } from '../cors.ts'
import { edge } from '../failures.ts'
import { HEADER } from '../header-names.ts'
import { SECURITY_HEADERS } from '../security-headers.ts'

/** An error of Node's parser. `rawPacket`: the bytes that it was reading. */
type ParserError = { readonly code?: string; readonly rawPacket?: unknown }

const BROKEN: Readonly<Record<string, 'headers_too_large' | 'request_timeout'>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/**
 * Answers requests that are not HTTP, or whose headers are far too large or too slow. They reach no route, so method and path are read
 * from the packet, if it has the first line: the answer has the envelope of their route, or else of their surface. Otherwise they get
 * the gateway's envelope, which includes the members of the other one.
 */
export function answerBrokenRequest(
  { config }: Kernel,
  newId: () => string,
  routeOf: (request: { readonly method: string; readonly url: string }) => RouteOptions | undefined,
) {
  return (error: ParserError, socket: Socket): void => {
    if (socket.destroyed || !socket.writable) return
    // The answer has begun, so no second one is sent.
    if (answerOn(socket)?.headersSent === true) return void socket.destroy()
    const { line, origin } = beginningOf(error.rawPacket)
    const failure = edge(BROKEN[error.code ?? ''] ?? 'validation_error')
    const id = newId()
    const { url, config: ofRoute } = (line && routeOf(line)) ?? {}
    const isAuth = line !== undefined && isBelow(config.auth.base_path, line.url)
    const body =
      ofRoute?.envelope?.(failure, { id, routeOptions: { url, config: ofRoute } }) ??
      (isAuth ? authEnvelope(failure) : gatewayEnvelope(failure, id))
    answerLast(socket, failure, id, body, corsHeaders(config, origin))
  }
}

/** Node would close the connection of a CONNECT, which is for proxies, without an answer. No method is allowed at its address. */
export function answerConnect(socket: Socket, id: string): void {
  socket.on('error', () => {})
  if (answerOn(socket)) return void socket.destroy()
  const failure = edge('method_not_allowed', { headers: { allow: '' } })
  answerLast(socket, failure, id, gatewayEnvelope(failure, id))
  socket.destroySoon()
}

/** The answer to an earlier request of the connection. Node's own handler uses this field too. */
const answerOn = (socket: Socket) => (socket as { _httpMessage?: ServerResponse | null })._httpMessage

/** Method, path and origin of a request, where the packet begins with its first line. */
function beginningOf(packet: unknown): {
  readonly line?: { readonly method: string; readonly url: string }
  readonly origin?: string
} {
  const text = Buffer.isBuffer(packet) ? packet.toString('latin1') : ''
  const [, method, url] = /^([A-Z]{3,10}) (\/[^ ?\r\n]{0,300})/.exec(text) ?? []
  if (method === undefined || url === undefined) return {}
  const [, origin] = /\r\norigin: {0,8}([^\r\n]{1,300})/i.exec(text) ?? []
  return { line: { method, url }, ...(origin !== undefined && { origin }) }
}

const isBelow = (prefix: string, path: string): boolean => path === prefix || path.startsWith(`${prefix}/`)

const authEnvelope = ({ message, code }: Failure) => ({ message, code: code.toUpperCase() })
const gatewayEnvelope = ({ message, code }: Failure, id: string) => ({
  status: 'error',
  message,
  error: message,
  code,
  request_id: id,
})

/** Writes an answer that is not Fastify's, and ends the connection. */
function answerLast(
  socket: Socket,
  { status, headers: ofFailure }: Failure,
  id: string,
  envelope: object,
  more: object = {},
): void {
  const body = JSON.stringify(envelope)
  const headers = {
    ...SECURITY_HEADERS,
    ...ofFailure,
    ...more,
    [HEADER.requestId]: id,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
}
