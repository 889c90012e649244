import { createRequire } from 'node:module'
import { limitsOf } from '#databases/drivers/client-limits.ts'
import type { Driver, DriverContext, DriverSettings } from '#databases/drivers/driver.ts'
import { fail } from '#databases/failures.ts'
import { readScyllaUrl } from '#kernel/config/scylla-url.ts'

/** Opens the driver of a configured or registered client. */
export function openScylla({ config }: DriverContext, settings: DriverSettings): Driver {
  const address = readScyllaUrl(settings.url)
  // Registered and configured addresses were parsed by the same form.
  if (address === undefined) throw fail('client_unavailable')
  const { createScyllaDriver }: typeof import('#databases/drivers/scylla/driver.ts') = load(
    '#databases/drivers/scylla/driver.ts',
  )
  return createScyllaDriver({
    address,
    ...limitsOf(settings),
    applicationName: `gatehouse ${settings.name}`,
    maxRows: config.gateway.max_rows,
    inProduct: config.limits.in_product,
    answerBytes: config.limits.answer,
    readOnly: settings.readOnly,
  })
}

/** Loaded with the first client of this kind: with cassandra-driver it takes 5 MB of each process. */
const load = createRequire(import.meta.url)
