import type { Kernel } from '#kernel/kernel.ts'
import type { Mail } from '#kernel/mail/mailer.ts'

/** A mail that somebody asked for by naming an address, known or not; `mail-answers.ts` is the queue's side. */
export type MailRequest = AskedByName | ToNewAddress | FirstLink

type AskedByName = {
  /**
   * `renew`: the stored password is too costly to check, so its user needs another. `change`: it was right, and has to be
   * changed first.
   */
  readonly flow: 'verify' | 'reset' | 'renew' | 'change'
  readonly email: string
  readonly callbackURL?: string | undefined
}

/** To an address that is not proven a link, to another one a notice that it has an account. */
export type FirstLink = {
  readonly flow: 'first-link'
  readonly email: string
  /** Who was added by this sign-up or has shown the password; of a hidden sign-up an id that nobody has. */
  readonly userId: string
  /** What the link keeps of the cookie of this user's browser. */
  readonly browser: string
  readonly callbackURL: string | undefined
  /** Then no link goes out without `auth.email.send_on_sign_up`. */
  readonly isSignUp: boolean
}

/** Goes out unless the address has an account by then. */
type ToNewAddress = { readonly flow: 'new-address'; readonly email: string; readonly mail: Mail }

/**
 * Leaves the request to the queue: the answer is the same for every address, and takes the same time. Sealed, because a
 * list of who forgot a password is nobody's business.
 */
export async function requestMail(kernel: Kernel, request: MailRequest): Promise<void> {
  await kernel.jobs.enqueue(kernel.db, 'answer-mail-request', {
    request: kernel.secrets.seal('mail', JSON.stringify(request)),
  })
}
