import type { Kernel } from '#kernel/kernel.ts'
import { mailVerification } from './email/email.ts'
import { mailReset } from './password/password.ts'

/** A mail that somebody asked for by naming an address, known or not. */
export type MailRequest = {
  readonly flow: 'verify' | 'reset'
  readonly email: string
  readonly callbackURL?: string | undefined
}

/**
 * Leaves the request to the queue: the answer is the same for every address, and takes the same time. Sealed, because a
 * list of who forgot a password is nobody's business.
 */
export async function requestMail(kernel: Kernel, request: MailRequest): Promise<void> {
  await kernel.jobs.enqueue(kernel.db, 'answer-mail-request', {
    request: kernel.secrets.seal('mail', JSON.stringify(request)),
  })
}

/** The queue's side. */
export async function answerMailRequest(kernel: Kernel, sealed: string): Promise<void> {
  const opened = kernel.secrets.open('mail', sealed)
  if (opened === undefined) throw new Error('a queued mail request was sealed under another SERVICE_SECRET')
  // What `requestMail` wrote.
  const { flow, email, callbackURL } = JSON.parse(opened) as MailRequest
  await (flow === 'verify' ? mailVerification : mailReset)(kernel, email, callbackURL)
}
