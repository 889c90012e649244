import type { Kernel } from '#kernel/kernel.ts'
import type { Mail } from '#kernel/mail/mailer.ts'

/** Mails that are asked for by naming an address, with an account or without one: an entry each. requested-mails.ts is the queue's side. */
export type MailRequest = {
  'verify-email': AskedByAddress
  'first-link': FirstLink
  /** Goes out unless the address has an account by then. */
  'change-email': { readonly email: string; readonly mail: Mail }
  'reset-password': AskedByAddress
  /** The stored password is too costly to check, so the user needs another. */
  'renew-password': AskedByAddress
  /** The password was right and has to be changed first. */
  'change-password': AskedByAddress
}

type AskedByAddress = { readonly email: string; readonly callbackURL?: string | undefined }

/** To an address that is not proven a link, to another one a notice that it has an account. */
export type FirstLink = {
  readonly email: string
  /** The user that this sign-up has added or whose password was shown; of a hidden sign-up an id without a user. */
  readonly userId: string
  /** What the link keeps of the cookie of this user's browser. */
  readonly browser: string
  readonly callbackURL: string | undefined
  /** Then no link goes out without `auth.email.send_on_sign_up`. */
  readonly isSignUp: boolean
}

/**
 * Leaves the request to the queue: the answer is the same for every address, and takes the same time. The job is sealed, since it
 * would show who has forgotten a password.
 */
export async function requestMail<Name extends keyof MailRequest>(
  kernel: Kernel,
  name: Name,
  request: MailRequest[Name],
): Promise<void> {
  await kernel.jobs.enqueue(kernel.db, 'answer-mail-request', {
    request: kernel.secrets.seal('mail', JSON.stringify({ name, request })),
  })
}
