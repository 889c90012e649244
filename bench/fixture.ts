import { once } from 'node:events'
import { onInterruption } from './interruption.ts'
import { type Server, startServer } from './server.ts'
import { type Service, type Settings, startService } from './service.ts'

/** The environment of a program: the service and its server. */
export type Fixture = Service & {
  /** Description of the server for the output. */
  readonly describes: string
}

/** Runs a program with the service on the server of TEST_DATABASE_URL, or on one of its own. Removes everything afterwards, even after Ctrl-C. */
export async function withFixture(
  work: (fixture: Fixture) => Promise<void>,
  settings: Settings = {},
): Promise<void> {
  await withServer(async (server, signal) => {
    const service = await startService(server, () => settings)
    const interrupted = once(signal, 'abort').then(() => signal.throwIfAborted())
    // It may come before anything awaits it.
    interrupted.catch(() => {})
    try {
      await Promise.race([work({ ...service, describes: server.describes }), interrupted])
    } finally {
      await service.stop()
    }
  })
}

/** The signal is aborted by Ctrl-C or SIGTERM; the work then ends as soon as it can. */
export async function withServer(
  work: (server: Server, signal: AbortSignal) => Promise<void>,
  start = startServer,
): Promise<void> {
  const signal = onInterruption()
  const server = await start()
  try {
    await work(server, signal)
  } finally {
    await server.stop()
  }
}
