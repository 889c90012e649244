import type { Client, Clients } from '#databases/clients/clients.ts'
import type { Presence } from '#databases/drivers/driver.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { unknownClient } from './called-client.ts'
import type { GatewayCaller } from './caller.ts'
import { callerOn } from './identify.ts'

/** The operator of a command, with the rights of the admin key on each client. */
type Operator = {
  readonly requestId: string
  /** Finds the client as it is now. */
  on(client: string): Promise<GatewayCaller>
  /** To be called at the end. */
  release(): void
}

export function createOperator(kernel: Kernel, clients: Clients, presence: Presence): Operator {
  const requestId = uuidv7(kernel.now(), kernel.random)
  const retained = new Map<Client, (answered: boolean) => void>()
  return {
    requestId,
    async on(name) {
      const found = await clients.find(name)
      if (found === undefined) throw unknownClient()
      if (found.source === 'database' && !retained.has(found)) retained.set(found, clients.retain(found))
      return callerOn(await clients.locate(found), { kind: 'admin' }, requestId, presence)
    },
    release() {
      for (const release of retained.values()) release(true)
    },
  }
}
