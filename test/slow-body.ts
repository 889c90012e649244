import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** Sends the head of a POST, runs `happen` before the body is complete, and returns the raw response. Without `body` it ends as an empty one. */
export async function whileArriving(
  url: string,
  { path, headers, body }: { path: string; headers: Readonly<Record<string, string>>; body: unknown },
  happen: () => Promise<unknown>,
  /** Resolves once the service has processed the head. */
  judged: () => Promise<unknown> = () => sleep(100),
): Promise<string> {
  const { hostname, port } = new URL(url)
  const text = JSON.stringify(body)
  const socket = connect(Number(port), hostname)
  const lines = Object.entries({
    host: 'localhost',
    ...headers,
    'content-type': 'application/json',
    ...(body === undefined
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': Buffer.byteLength(text) }),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body === undefined ? '' : text.slice(0, 1)}`)
  await judged()
  await happen()
  socket.write(body === undefined ? '0\r\n\r\n' : text.slice(1))
  return (await socket.setEncoding('utf8').toArray()).join('')
}
