import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export type SharedCassandra = {
  /** Test processes request the server's address here. */
  readonly requestUrl: string
  stop(): Promise<void>
}

/** Shares one server among all test processes of a run. It starts with the first request: a start takes both cores for 9 s. */
export async function shareCassandra(): Promise<SharedCassandra> {
  let started: Promise<{ readonly url: URL; stop(): Promise<void> }> | undefined
  const requests = createServer(async (_request, response) => {
    started ??= import('./server.ts').then(({ startCassandra }) => startCassandra())
    await started.then(
      ({ url }) => response.end(url.href),
      (error: Error) => response.writeHead(500).end(error.message),
    )
  }).listen(0, '127.0.0.1')
  await once(requests, 'listening')
  const { port } = requests.address() as AddressInfo // of a server on a port
  return {
    requestUrl: `http://127.0.0.1:${port}`,
    async stop() {
      requests.close()
      requests.closeAllConnections()
      await started?.then(
        ({ stop }) => stop(),
        () => {},
      )
    },
  }
}

/** Requests the address of the run's server. */
export async function requestCassandra(): Promise<URL> {
  const response = await fetch(process.env.TEST_CASSANDRA_REQUESTS ?? '')
  const text = await response.text()
  if (!response.ok) throw new Error(text)
  return new URL(text)
}
