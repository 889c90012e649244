import { type Announce, announceWrites } from '#databases/clients/announce-writes.ts'
import type { Driver, DriverContext, DriverSettings, RowLevelSecurity } from '#databases/drivers/driver.ts'
import { DRIVERS } from '#databases/drivers/index.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** A named database that callers reach through the gateway. */
export type Client = {
  readonly name: string
  readonly driver: Driver
  /** Set by the operator's configuration (or built in), or registered over HTTP. */
  readonly source: 'config' | 'database'
  /** Digest of a registered address: shows a change of address where the backend has no identity. */
  readonly addressDigest?: string
  /** Refuses writes until it is thawed. */
  readonly isFrozen: boolean
  /** Refuses writes, since a restore replaces the data of its database: then it is frozen as well. */
  readonly isRestoring?: true
  /** Callers act as roles of the database, and its policies filter rows. */
  readonly rowLevelSecurity: RowLevelSecurity | undefined
  /** No setting decides about its row-level security, which can be switched on over HTTP (protection.ts). */
  readonly isUndecided?: boolean
  /** Answers may be cached; not where rows change without a write that the gateway sees. */
  readonly isCached: boolean
}

export type ClientContext = DriverContext & {
  /** Tells all processes what has changed: the structure, and answers that they may have cached. */
  readonly announce?: Announce | undefined
}

export const announceOf =
  ({ coherence, log }: Kernel): Announce =>
  (tags) =>
    coherence.announce(tags).catch((error: unknown) => {
      // The write is done. Other processes serve cached answers, and know the old structure, until the control database is back.
      log.error({ event: 'announcement_lost', error }, 'other processes were not notified of a write')
    })

export function driverFor(context: ClientContext, settings: DriverSettings): Driver {
  const driver = DRIVERS[settings.driver].open(context, settings)
  if (context.announce === undefined) return driver
  return announceWrites(driver, context.announce, context.config.gateway.cache.ttl > 0)
}
