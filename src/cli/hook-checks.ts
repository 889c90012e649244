import type { Config } from '#kernel/config/config.ts'
import { createOutboundRequests } from '#kernel/http/outbound/outbound.ts'
import type { Finding } from './finding.ts'
import { reasonOf } from './terminal.ts'

/** Whether each hook can be reached. It is asked nothing: a GET without a signature decides nothing there. */
export async function hookFindings(config: Config): Promise<readonly Finding[]> {
  const outbound = createOutboundRequests(config)
  try {
    return await Promise.all(
      Object.entries(config.auth.hooks).map(async ([name, { url, timeout }]): Promise<Finding> => {
        const subject = `hook ${name}`
        try {
          const { status } = await outbound.send(url, { timeout, maxBytes: 0, cutsBody: true })
          const says = `its address answers (${status} to GET), and only a call shows whether it knows the secret`
          return { subject, ok: true, says }
        } catch (error) {
          return { subject, ok: false, says: `auth.hooks.${name}.url cannot be reached: ${reasonOf(error)}` }
        }
      }),
    )
  } finally {
    await outbound.close()
  }
}
