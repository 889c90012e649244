import { createSecretMask } from '#kernel/config/secret-mask.ts'
import { withTimeout } from '#kernel/timeout.ts'
import { beginChecks, type DoctorContext, type DoctorDatabases } from './doctor-checks.ts'
import type { Finding } from './finding.ts'

/** The findings of a running service. */
export type Doctor = () => Promise<readonly Finding[]>

/** Milliseconds after which a part of the checks is told as late. */
const PATIENCE = 20_000

/**
 * One run at a time. Calls share it until its last check has ended, also one that was late, so that calls cannot multiply connections and
 * requests.
 */
export function createDoctor(
  context: DoctorContext,
  databases: DoctorDatabases,
  { patience = PATIENCE, begin = beginChecks } = {},
): Doctor {
  const mask = createSecretMask(context.config)
  let running: Promise<readonly Finding[]> | undefined
  return () => {
    running ??= run()
    return running
  }

  async function run(): Promise<readonly Finding[]> {
    const parts = begin(context, (work) => work(databases), true).map(({ subject, found }) => ({
      subject,
      found: found.catch((error: unknown) => [failed(subject, error)]),
    }))
    Promise.all(parts.map(({ found }) => found)).then(() => {
      running = undefined
    })
    const findings = await Promise.all(
      parts.map(({ subject, found }) => withTimeout(found, patience, () => [late(subject, patience)])),
    )
    return findings.flat().map((finding) => ({ ...finding, says: mask(finding.says) }))
  }

  /** It is a bug, so the log has it, and the other parts are told. */
  function failed(subject: string, error: unknown): Finding {
    context.log.error({ event: 'check_failed', subject, error }, 'a check of the doctor failed')
    return { subject, ok: false, says: 'its checks failed: the log has a record check_failed with the cause' }
  }
}

const late = (subject: string, patience: number): Finding => ({
  subject,
  ok: false,
  says: `not all checks have ended within ${patience / 1_000} s: something that they ask does not answer`,
})
