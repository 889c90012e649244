import { actOnTicket } from '#identity/act.ts'
import type { SignUpMark } from '#identity/ticket-purposes.ts'
import type { Ticket } from '#identity/tickets.ts'
import { hasProvenEmail, type User } from '#identity/users.ts'
import { Failure } from '#kernel/errors.ts'
import { type Kernel, undoneByThrow } from '#kernel/kernel.ts'
import { type Admission, admit } from '../door/admit.ts'
import { fail, HOOK_FAILURES } from '../errors.ts'
import type { FormValues } from '../mailing/flow.ts'
import type { LinkClick } from '../mailing/link-click.ts'
import { openLink } from '../mailing/links.ts'
import { mailNewAddress } from './change-email.ts'
import { type ProvingClick, proveEmail, readEvidence } from './first-proof.ts'
import { changeNow, type FollowedLink } from './new-address.ts'

const EMAIL_LINKS = ['verify-email', 'confirm-change-email', 'change-email'] as const
type EmailTicket = Ticket<(typeof EMAIL_LINKS)[number]>

const invalidToken = () => fail('INVALID_TOKEN')

/** Redeems a link for an application that calls the endpoint itself, without a page. */
export const followEmailLink = (kernel: Kernel, token: string, click: LinkClick): Promise<FollowedLink> =>
  redeem(kernel, token, { ...click, evidence: { by: 'link' } })

/** Redeems a link for the page's button. Where the click alone does not show that it is the owner's, a password does. */
export async function confirmEmailLink(
  kernel: Kernel,
  token: string,
  click: LinkClick,
  values: FormValues,
): Promise<FollowedLink> {
  // An unknown token is refused before a password is hashed.
  const evidence = await readEvidence(kernel, await openLink(kernel, EMAIL_LINKS, token), click, values)
  return redeem(kernel, token, { ...click, evidence })
}

const redeem = (kernel: Kernel, token: string, click: ProvingClick): Promise<FollowedLink> =>
  actOnTicket(kernel, { purposes: EMAIL_LINKS, token }, invalidToken, async (kernel, user, ticket) => {
    if (ticket.expired) throw fail('TOKEN_EXPIRED')
    return followTicket(kernel, user, ticket, click)
  })

/** Does what a redeemed link, or its code, is for. */
export async function followTicket(
  kernel: Kernel,
  user: User,
  ticket: EmailTicket,
  click: ProvingClick,
): Promise<FollowedLink> {
  // The payloads of these purposes.
  const { purpose, payload, sessionId } = ticket
  switch (purpose) {
    case 'change-email':
      return changeNow(kernel, user, click, ticket as Ticket<'change-email'>)
    case 'confirm-change-email': {
      const to = payload as Ticket<'confirm-change-email'>['payload']
      return { user: await mailNewAddress(kernel, { user, sessionId }, to), admission: undefined }
    }
    case 'verify-email': {
      const proven = await proveEmail(kernel, user, click, payload as SignUpMark)
      return { user: proven, admission: await signInIfOwn(kernel, user, click) }
    }
  }
}

/**
 * The session of `auth.email.sign_in_after_verification`. An attacker may send a victim the link of the attacker's own account. It must not
 * sign the victim in to that account, neither from the attacker's page nor by our button, which asks for no password when the address is
 * proven already. `user`: as it was before the click. Undefined also for a user who has to sign in with the password, and
 * where a hook refuses or fails: the address is proven all the same.
 */
async function signInIfOwn(
  kernel: Kernel,
  user: User,
  { caller, context }: ProvingClick,
): Promise<Admission | undefined> {
  if (!kernel.config.auth.email.sign_in_after_verification) return undefined
  if (caller !== undefined || context.isCrossSite || hasProvenEmail(user)) return undefined
  const entrance = { way: 'mail', shown: ['mail'], proof: { userId: user.id }, refuse: invalidToken } as const
  try {
    return await undoneByThrow(kernel, () => admit(kernel, entrance, context))
  } catch (error) {
    if (error instanceof Failure && WITHOUT_SESSION.has(error.code)) return undefined
    throw error
  }
}

const WITHOUT_SESSION: ReadonlySet<string> = new Set(['PASSWORD_SIGN_IN_REQUIRED', ...HOOK_FAILURES])
