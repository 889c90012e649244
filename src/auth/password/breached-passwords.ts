import { hash } from 'node:crypto'
import type { OutboundAnswer } from '#kernel/http/outbound/outbound.ts'
import type { Kernel } from '#kernel/kernel.ts'

/** Milliseconds and bytes. A request waits for the answer, and the padded list of one prefix has about 60 KB. */
const LIMITS = { timeout: 3_000, maxBytes: 512 * 1_024 }

/**
 * Is the password known from a breach? The query is k-anonymous: the service gets the first 5 of the 40 digits of the SHA-1 and
 * answers with all suffixes that it knows, padded. Neither the service nor an observer of the traffic learns more.
 *
 * When the service does not answer, the password passes: an outage of a third party must not end sign-up and password reset
 * here, and the rest of the policy still holds.
 */
export async function isBreached(kernel: Kernel, password: string): Promise<boolean> {
  const url = kernel.config.auth.email_password.breach_check_url
  if (url === undefined) return false
  const digest = hash('sha1', password).toUpperCase()
  const answer = await ask(kernel, `${url.replace(/\/$/, '')}/${digest.slice(0, 5)}`)
  return answer !== undefined && isListed(digest.slice(5), answer.body.toString('latin1'))
}

async function ask({ outbound, log }: Kernel, url: string): Promise<OutboundAnswer | undefined> {
  try {
    const headers = { 'add-padding': 'true', 'user-agent': 'gatehouse' }
    const answer = await outbound.send(url, { headers, ...LIMITS })
    if (answer.status === 200 && answer.isWhole) return answer
    log.warn({ event: 'breach_check_failed', status: answer.status }, 'the breach check gave no answer')
  } catch (error) {
    log.warn({ event: 'breach_check_failed', error }, 'the breach check gave no answer')
  }
  return undefined
}

/** Each line is `SUFFIX:COUNT`; a count of 0 is padding. */
const isListed = (suffix: string, list: string): boolean =>
  new RegExp(`^${suffix}:0*[1-9]`, 'm').test(list.toUpperCase())
