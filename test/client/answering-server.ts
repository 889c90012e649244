import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ClientOptions, createClient } from '#client/client.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

export type Answer = (response: ServerResponse, request: IncomingMessage) => void
type Received = { readonly path: string; readonly headers: IncomingMessage['headers']; readonly body: string }

/** A server that gives these answers one after the other, and then the last one for ever. */
export async function answering(...answers: readonly Answer[]) {
  const received: Received[] = []
  const { url } = await startLoopbackServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => {
      body += text
    })
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body })
      answers[Math.min(received.length, answers.length) - 1]?.(response, request)
    })
  })
  const client = (more: Partial<ClientOptions> = {}) => createClient({ url, ...more })
  return { received, client, url, orders: client().from('orders') }
}

export const json =
  (status: number, body: object, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
export const rows = json(200, { status: 'success', data: [{ id: 1 }] })
export const refused = (status: number, code: string, headers: Record<string, string> = {}) =>
  json(
    status,
    { status: 'error', code, message: 'A message', error: 'Some advice', request_id: 'r1' },
    headers,
  )
export const cut: Answer = (response) => response.destroy()
export const half: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1_000 }).write('{"data":[')
  response.destroy()
}
