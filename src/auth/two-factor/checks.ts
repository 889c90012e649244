import { hasMailCounted, type Mailbox, takesMailedCodes } from '#identity/mailbox.ts'
import { countAttempt, redeemMailedCode } from '#identity/mailed-codes.ts'
import type { Shown } from '#identity/shown.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { codeHashes, plainCode } from './codes.ts'
import type { Counters } from './lock.ts'
import { deleteBackupCode, type Factor, useStep } from './store.ts'
import { totpStep } from './totp.ts'

/** The session or the pending sign-in in which a code is typed. */
export type Subject = {
  /** Null: a pending sign-in. */
  readonly sessionId: string | null
  readonly subject: string
  /** Where its wrong codes count. */
  readonly counters: Counters
}

/** Checks and uses up a code, with the user's row locked. Returns why it is refused; undefined when it is right. */
export type Check = (
  kernel: Kernel,
  user: User,
  factor: Factor,
  subject: Subject,
) => Promise<CodeFailure | undefined>

export type CodeFailure = (typeof WRONG)[number] | 'OTP_HAS_EXPIRED' | 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE'

/** Refusals that count as a try. */
const WRONG = ['WRONG_CODE', 'INVALID_BACKUP_CODE'] as const
export const isWrong = (failure: CodeFailure): boolean => WRONG.some((wrong) => wrong === failure)

/** A method of the second factor, as the endpoints name it. */
export type CheckName = 'totp' | 'otp' | 'backup'

export const CHECKS: Readonly<Record<CheckName, (code: string) => Check>> = {
  totp: checkTotp,
  otp: checkMailedCode,
  backup: checkBackupCode,
}

/** A time step is accepted once (RFC 6238 section 5.2). */
function checkTotp(code: string): Check {
  return async (kernel, user, { id, secret }) => {
    const opened = secret === null ? undefined : kernel.secrets.open('two-factor-secret', secret, user.id)
    const step = opened === undefined ? undefined : totpStep(opened, plainCode(code), kernel.now())
    return step !== undefined && (await useStep(kernel.db, id, step)) ? undefined : 'WRONG_CODE'
  }
}

/** Wrong attempts at one code. */
const MAX_ATTEMPTS = 5

export const mailedCodeOwner = (userId: string, { subject }: Subject): string => `${userId}:${subject}`

function checkMailedCode(code: string): Check {
  return async (kernel, { id: userId, email: address }, _factor, subject) => {
    const mailed = { ...subject, userId, address }
    const hashes = codeHashes(kernel, 'mail', { owner: mailedCodeOwner(userId, subject), code })
    const end = await redeemMailedCode(kernel.db, mailed, hashes, MAX_ATTEMPTS)
    if (end !== undefined) return end > kernel.now() ? undefined : 'OTP_HAS_EXPIRED'
    const counted = await countAttempt(kernel.db, mailed)
    if (counted === undefined || counted.expiresAt <= kernel.now()) return 'OTP_HAS_EXPIRED'
    return counted.attempts < MAX_ATTEMPTS ? 'WRONG_CODE' : 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE'
  }
}

/**
 * Returns what a code by mail shows. Throws where it is not taken, since the mailbox counts once (auth.md 7). Call it before the code is
 * checked: a failure after the check would undo its count. `isRequired`: a role has to be content with it.
 */
export function expectMailedCode(
  { method }: Pick<Factor, 'method'>,
  mailbox: Mailbox,
  { isRequired = false } = {},
): Shown {
  const hasCounted = hasMailCounted(mailbox)
  if (!takesMailedCodes(mailbox) || (isRequired && hasCounted)) throw fail('OTP_NOT_ENABLED')
  if (hasCounted) return 'second mail'
  // It lets in a user of an authenticator app, and takes nothing away from that user.
  return method === 'otp' ? 'otp' : 'mailed code'
}

function checkBackupCode(code: string): Check {
  return async (kernel, { id: owner }, { id }) => {
    const hashes = codeHashes(kernel, 'backup', { owner, code })
    return (await deleteBackupCode(kernel.db, id, hashes)) ? undefined : 'INVALID_BACKUP_CODE'
  }
}
