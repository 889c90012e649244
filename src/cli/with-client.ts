import type { Command } from 'commander'
import { type Clients, openClients } from '#databases/clients/clients.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { ServiceDatabases } from '#startup/open-databases.ts'
import { contextOf } from './context.ts'
import { configuredNames, expectClient } from './named-client.ts'
import { withKernel } from './with-kernel.ts'

/** As `withKernel`, with the clients of the service; `name` is one of them. */
export async function withClient<T>(
  command: Command,
  name: string,
  work: (kernel: Kernel, clients: Clients, databases: ServiceDatabases) => Promise<T>,
): Promise<T> {
  const { environment } = contextOf(command)
  return withKernel(command, async (kernel, databases) => {
    await expectClient(kernel, configuredNames(kernel, databases), name)
    const { builtIn, callerRoles, logging } = databases
    const clients = openClients(kernel, {
      builtIn,
      callerRoles,
      loggingReaderUrl: logging?.readerUrl,
      environment,
    })
    try {
      return await work(kernel, clients, databases)
    } finally {
      await clients.close()
    }
  })
}
