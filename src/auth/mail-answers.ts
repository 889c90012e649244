import type { Kernel } from '#kernel/kernel.ts'
import { mailFirstLink, mailUnlessTaken, mailVerification } from './email/email.ts'
import type { MailRequest } from './mail-requests.ts'
import { mails } from './mails.ts'
import { mailReset } from './password/password.ts'

/** The queue's side of `requestMail`. */
export async function answerMailRequest(kernel: Kernel, sealed: string): Promise<void> {
  const opened = kernel.secrets.open('mail', sealed)
  if (opened === undefined) throw new Error('a queued mail request was sealed under another SERVICE_SECRET')
  // What `requestMail` wrote.
  const request = JSON.parse(opened) as MailRequest
  if (request.flow === 'new-address') return mailUnlessTaken(kernel, request.email, request.mail)
  if (request.flow === 'first-link') return mailFirstLink(kernel, request)
  const { flow, email, callbackURL } = request
  if (flow === 'verify') await mailVerification(kernel, email, callbackURL)
  else await mailReset(kernel, email, callbackURL, RESETS[flow])
}

const RESETS = {
  reset: mails.resetPassword,
  renew: mails.renewPassword,
  change: mails.changePassword,
} as const
