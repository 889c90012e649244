import { createIssuerKeys } from '#gateway/row-level-security/issuer-keys.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { createOutboundRequests } from '#kernel/http/outbound/outbound.ts'
import { createLog } from '#kernel/log.ts'
import type { Finding } from './finding.ts'
import { reasonOf } from './terminal.ts'

/** Whether the keys of each issuer that a client trusts can be read. */
export async function issuerFindings(config: Config): Promise<readonly Finding[]> {
  const outbound = createOutboundRequests(config)
  const log = createLog({ level: 'silent', format: 'json' })
  const trusted = Object.entries(config.clients).flatMap(([client, { row_level_security }]) =>
    row_level_security.issuers.map((issuer) => ({ client, issuer })),
  )
  try {
    return await Promise.all(
      trusted.map(async ({ client, issuer }): Promise<Finding> => {
        const subject = `client ${client}`
        try {
          await createIssuerKeys({ log, outbound, now: systemClock }, issuer).read()
          return { subject, ok: true, says: `the keys of the issuer ${issuer.issuer} were read` }
        } catch (error) {
          const says = `the keys of the issuer ${issuer.issuer} cannot be read: ${reasonOf(error)}`
          return { subject, ok: false, says }
        }
      }),
    )
  } finally {
    await outbound.close()
  }
}
