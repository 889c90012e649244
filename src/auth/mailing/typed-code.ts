import type { FastifyRequest } from 'fastify'
import { Refusal } from '#identity/act.ts'
import type { Source } from '#identity/known-devices.ts'
import type { CodeOutcome, CodeTry, RightCode } from '#identity/link-codes.ts'
import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import { isBanned, type User } from '#identity/users.ts'
import { recordFailure } from '#kernel/audit/record-failure.ts'
import { retryAfter } from '#kernel/http/failures.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { browserMark, CODE_COOKIE } from '../door/cookies.ts'
import { fail } from '../errors.ts'
import { sourceFor } from './link-click.ts'
import { type CodeBrowser, codeHashesOf } from './link-code.ts'

/** The code that a person has typed, and the address that it was mailed to. */
export type TypedCode = CodeBrowser & {
  readonly address: string
  readonly code: string
  /** As one of the user who has the address. */
  readonly source: Source
}

export const typedCode = (request: FastifyRequest, address: string, code: string): TypedCode => {
  const cookie = CODE_COOKIE.of(request)
  const browser = cookie === undefined ? undefined : browserMark(cookie)
  return { address, code, browser, source: sourceFor(request, address) }
}

export const codeTry = <P extends MailedPurpose>(
  kernel: Kernel,
  purposes: readonly P[],
  { address, code, browser, source }: TypedCode,
): CodeTry<P> => {
  const hashes = purposes.flatMap((purpose) => codeHashesOf(kernel, purpose, address, code))
  return { purposes, address, browser, source, hashes }
}

const FAILURES = { wrong: 'INVALID_OTP', spent: 'TOO_MANY_ATTEMPTS', expired: 'OTP_EXPIRED' } as const

type CodeFailure = (typeof FAILURES)[keyof typeof FAILURES] | 'TOO_MANY_WRONG_CODES'

/** Throws unless the code is right. The count of the try is committed, and the audit trail shows it: each code is a way to the account. */
export function expectRight<P extends MailedPurpose>(
  kernel: Pick<Kernel, 'now'>,
  user: User | undefined,
  outcome: CodeOutcome<P>,
): RightCode<P> {
  const refusal = (code: CodeFailure, headers?: Readonly<Record<string, string>>) =>
    refusedCode(user, code, headers)
  if (typeof outcome === 'string') throw refusal(FAILURES[outcome])
  if ('lockedUntil' in outcome) {
    const left = outcome.lockedUntil.getTime() - kernel.now().getTime()
    throw refusal('TOO_MANY_WRONG_CODES', retryAfter(Math.max(1, Math.ceil(left / 1_000))))
  }
  if (user !== undefined && isBanned(user, kernel.now())) throw refusal('INVALID_OTP')
  // With the session that asked.
  if (outcome.ticket.expired) throw refusal('OTP_EXPIRED')
  return outcome
}

/** Commits the count of the try, and is written to the audit trail. */
export function refusedCode(
  user: User | undefined,
  code: CodeFailure,
  headers?: Readonly<Record<string, string>>,
): Refusal {
  const failure = fail(code, headers && { headers })
  return new Refusal(failure, (kernel) =>
    recordFailure(kernel, 'sign_in.failed', { targetId: user?.id, reason: failure.code }),
  )
}
