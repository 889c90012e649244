import type { Kernel } from '#kernel/kernel.ts'
import { mailUnlessTaken } from '../email/change-email.ts'
import { mailFirstLink, mailVerification } from '../email/verification.ts'
import { mailSignIn } from '../magic-link/magic-link.ts'
import { mailReset } from '../password/reset.ts'
import type { MailRequest } from './request.ts'
import { MAILS } from './texts.ts'

type Answers = {
  readonly [Name in keyof MailRequest]: (kernel: Kernel, request: MailRequest[Name]) => Promise<void>
}

/** The verb that the queue calls for each request. */
const ANSWERS: Answers = {
  'sign-in': mailSignIn,
  'verify-email': mailVerification,
  'first-link': mailFirstLink,
  'change-email': mailUnlessTaken,
  'reset-password': (kernel, request) => mailReset(kernel, request),
  'renew-password': (kernel, request) => mailReset(kernel, request, MAILS.renewPassword),
  'change-password': (kernel, request) => mailReset(kernel, request, MAILS.changePassword),
}

/** The job of `requestMail`. */
export async function answerMailRequest(
  kernel: Kernel,
  { id, sealed }: { readonly id: string; readonly sealed: string },
): Promise<void> {
  const opened = kernel.secrets.open('mail-request', sealed, id)
  if (opened === undefined) throw new Error('a queued mail request was sealed under another SERVICE_SECRET')
  // `requestMail` wrote it.
  await answer(kernel, JSON.parse(opened) as Queued<keyof MailRequest>)
}

type Queued<Name extends keyof MailRequest> = { readonly name: Name; readonly request: MailRequest[Name] }

const answer = <Name extends keyof MailRequest>(
  kernel: Kernel,
  { name, request }: Queued<Name>,
): Promise<void> => ANSWERS[name](kernel, request)
