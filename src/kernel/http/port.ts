import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createServer } from 'node:net'
import type { Config } from '../config/config.ts'

type Address = Pick<Config['server'], 'host' | 'port'>

/** Why the service cannot listen there; undefined when it can. Tries it. */
export async function portProblem({ host, port }: Address): Promise<string | undefined> {
  if (port === 0) return undefined
  const server = createServer()
  try {
    server.listen({ host, port })
    await once(server, 'listening')
    return undefined
  } catch (error) {
    return unlistenable({ host, port }, error)
  } finally {
    server.close()
  }
}

/** The operator's message for an error of `listen`. */
export function unlistenable({ host, port }: Address, error: unknown): string {
  const { code = '' } = error as NodeJS.ErrnoException // thrown by node:net
  if (code === 'EADDRINUSE')
    return `server.port: ${port} is in use on ${host}. Stop what listens there, or set another with SERVICE_SERVER__PORT or --port.`
  if (code === 'EACCES')
    return `server.port: ${port} is reserved for root. Set a port from 1024 on, and use a proxy for ${port}.`
  if (code === 'EADDRNOTAVAIL') return `server.host: ${host} is not an address of this machine.`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `server.host: ${host} is not found.`
  return `server.host, server.port: cannot listen on ${host}:${port} (${code || error}).`
}

/** Whether Gatehouse listens there. */
export function answersAsGatehouse({ host, port }: Address): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host, port, path: '/', headers: { accept: 'application/json' }, timeout: 2_000 })
    request.once('timeout', () => request.destroy())
    request.once('error', () => resolve(false))
    request.once('response', async (answer) => {
      const text = await readStart(answer).catch(() => '')
      request.destroy()
      resolve(text.startsWith('{"name":"Gatehouse"'))
    })
  })
}

async function readStart(answer: IncomingMessage): Promise<string> {
  for await (const chunk of answer.setEncoding('utf8')) return String(chunk)
  return ''
}
