import { redirectUri } from '#auth/social/client/authorization.ts'
import type { ProviderClient } from '#auth/social/client/provider-client.ts'
import { createSocialProviders } from '#auth/social/social-providers.ts'
import { systemClock } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { createOutboundRequests } from '#kernel/http/outbound/outbound.ts'
import { createLog } from '#kernel/log.ts'
import type { Finding } from './finding.ts'
import { reasonOf } from './terminal.ts'

/** The redirect URI to register at each identity provider, and whether the endpoints of an issuer can be discovered. */
export async function providerFindings(config: Config): Promise<readonly Finding[]> {
  const outbound = createOutboundRequests(config)
  const publicUrl = () => config.server.public_url ?? `http://localhost:${config.server.port}`
  const log = createLog({ level: 'silent', format: 'json' })
  const kernel = { config, log, outbound, publicUrl, now: systemClock }
  try {
    const { list } = createSocialProviders(kernel)
    return await Promise.all(
      list().map(async (client) => {
        const redirect = `register ${redirectUri(kernel, client)} as redirect URI there`
        const { ok, says } = await reachOf(client)
        return { subject: `provider ${client.name}`, ok, says: `${says}; ${redirect}` }
      }),
    )
  } finally {
    await outbound.close()
  }
}

async function reachOf({ name, server, connect }: ProviderClient): Promise<Omit<Finding, 'subject'>> {
  if (server.type === 'oauth2')
    return {
      ok: true,
      says: `its endpoints begin with ${server.issuer}, and only a sign-in shows whether they work`,
    }
  try {
    await connect()
    return { ok: true, says: `the endpoints of the issuer ${server.issuer} were found` }
  } catch (error) {
    const setting = `auth.social.providers.${name}.issuer`
    return {
      ok: false,
      says: `the endpoints of the issuer ${server.issuer} (${setting}) were not found: ${reasonOf(error)}`,
    }
  }
}
