import type { FieldChange } from '#identity/custom-fields.ts'
import type { Source } from '#identity/known-devices.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Mail, recipientTag } from '#kernel/mail/mailer.ts'
import { uuidv7 } from '#kernel/random.ts'
import type { CodeBrowser } from './link-code.ts'

/** Mails that a request asks for by naming an address, which may have no account: an entry each. answer-request.ts is the queue's side. */
export type MailRequest = {
  /** To an address with an account, or to any other. */
  'sign-in': SignInMail
  'verify-email': ByAddress & ForCode & { readonly source?: Source | undefined }
  'first-link': FirstLink
  /** Sent unless the address has an account by then. */
  'change-email': { readonly email: string; readonly mail: Mail }
  'reset-password': ResetRequest & ForCode
  /** The stored password is too costly to check, so the user needs another. */
  'renew-password': ResetRequest
  /** The password was right, but has to be changed before it signs in. */
  'change-password': ResetRequest
}

type ByAddress = { readonly email: string; readonly callbackURL?: string | undefined }

/** Absent: the request was for a link. */
type ForCode = { readonly asked?: CodeBrowser | undefined }

type SignInMail = ByAddress &
  ForCode & {
    readonly source: Source
    readonly errorCallbackURL?: string | undefined
    /** For a new user. */
    readonly name?: string | undefined
    readonly fields?: FieldChange | undefined
    readonly newUserCallbackURL?: string | undefined
    /** The anonymous user in whose session it was asked for. */
    readonly anonymousId?: string | undefined
  }

type ResetRequest = ByAddress & { readonly source: Source }

/** A link to an unproven address; to a proven one a notice that it has an account. */
export type FirstLink = {
  readonly email: string
  /** The user who was added by this sign-up or has shown the password; for a hidden sign-up, the id of no user. */
  readonly userId: string
  /** The mark of this user's browser (cookies.ts). */
  readonly browser: string
  /** Begun by this sign-up. */
  readonly session?: string | undefined
  readonly callbackURL: string | undefined
  /** A link is then sent only with `auth.email.send_on_sign_up`. */
  readonly isSignUp: boolean
}

/**
 * Leaves the request to the queue, so that the answer is the same for every address and takes the same time. The job is sealed:
 * a list of users who have forgotten their password is confidential.
 */
export async function requestMail<Name extends keyof MailRequest>(
  kernel: Kernel,
  name: Name,
  request: MailRequest[Name],
): Promise<void> {
  const id = uuidv7(kernel.now(), kernel.random)
  const sealed = kernel.secrets.seal('mail-request', JSON.stringify({ name, request }), id)
  const job = { request: sealed, recipient: recipientTag(kernel, request.email) }
  await kernel.jobs.enqueue(kernel.db, 'answer-mail-request', job, id)
}
