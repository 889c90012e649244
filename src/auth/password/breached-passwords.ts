import { hash } from 'node:crypto'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { BreachListError, expectBreachList, isInList } from './breach-list.ts'

/** Milliseconds and bytes. A request waits for the answer, and the padded list of one prefix has about 60 KB. */
const LIMITS = { timeout: 3_000, maxBytes: 512 * 1_024 }

/**
 * Throws if the password is known from a breach. A check that fails refuses nobody by default: an outage of a third party must not end
 * sign-up and password reset here, and the rest of the policy still holds.
 */
export async function expectNoBreach(kernel: Kernel, password: string): Promise<void> {
  const { breach_check_file: file, breach_check_url: url } = kernel.config.auth.email_password
  if (file !== undefined) await check(kernel, () => isInList(file, password))
  if (url !== undefined) await check(kernel, () => isListedAt(kernel, url, password))
}

/** The problems of `breach_check_file` that stop a start. */
export async function breachListProblems({ auth }: Config): Promise<readonly string[]> {
  const file = auth.email_password.breach_check_file
  if (file === undefined) return []
  try {
    await expectBreachList(file)
    return []
  } catch (error) {
    const says = error instanceof BreachListError ? error.message : `cannot be read: ${codeOf(error)}`
    return [
      `auth.email_password.breach_check_file: ${file} ${says}. Make it by gatehouse breach-list build, or remove the setting.`,
    ]
  }
}

/** Of an error of the file system. */
function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error) return String(error.code)
  throw error
}

async function check({ config, log }: Kernel, isBreached: () => Promise<boolean>): Promise<void> {
  let found: boolean
  try {
    found = await isBreached()
  } catch (error) {
    log.warn({ event: 'breach_check_failed', error }, 'the breach check gave no answer')
    if (config.auth.email_password.breach_check_on_failure === 'open') return
    throw fail('BREACH_CHECK_UNAVAILABLE')
  }
  if (found) throw fail('PASSWORD_COMPROMISED')
}

/**
 * The query is k-anonymous: the service gets the first 5 of the 40 digits of the SHA-1 and answers with all suffixes that it knows, padded.
 * Neither the service nor an observer of the traffic learns more.
 */
async function isListedAt({ outbound }: Kernel, url: string, password: string): Promise<boolean> {
  const digest = hash('sha1', password).toUpperCase()
  const headers = { 'add-padding': 'true', 'user-agent': 'gatehouse' }
  const asked = `${url.replace(/\/$/, '')}/${digest.slice(0, 5)}`
  const { status, isWhole, body } = await outbound.send(asked, { headers, ...LIMITS })
  if (status !== 200 || !isWhole) throw new Error(`the breach service answered ${status}, or too much`)
  return isListed(digest.slice(5), body.toString('latin1'))
}

/** Each line is `SUFFIX:COUNT`; a count of 0 is padding. */
const isListed = (suffix: string, list: string): boolean =>
  new RegExp(`^${suffix}:0*[1-9]`, 'm').test(list.toUpperCase())
