import { type Server, startServer } from './server.ts'
import { type Service, type Settings, startService } from './service.ts'

/** The environment of a program: the service and its server. */
export type Fixture = Service & {
  /** Description of the server for the output. */
  readonly describes: string
  readonly server: Server
}

/** Runs a program with the service on the server of TEST_DATABASE_URL, or on one of its own. Removes everything afterwards, even after Ctrl-C. */
export async function withFixture(
  work: (fixture: Fixture) => Promise<void>,
  settings: Settings = {},
): Promise<void> {
  await withServer(async (server) => {
    const service = await startService(server, () => settings)
    try {
      await work({ ...service, server, describes: server.describes })
    } finally {
      await service.stop()
    }
  })
}

export async function withServer(
  work: (server: Server) => Promise<void>,
  start = startServer,
): Promise<void> {
  const interrupted = new Promise<never>((_, reject) => {
    process.once('SIGINT', () => reject(new Error('interrupted')))
  })
  // The rejection may come before anything awaits it.
  interrupted.catch(() => {})
  const server = await start()
  try {
    await Promise.race([work(server), interrupted])
  } finally {
    await server.stop()
  }
}
