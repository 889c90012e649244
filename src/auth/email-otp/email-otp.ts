import { act, actOnCode } from '#identity/act.ts'
import { type RightCode, redeemCode, returnTry, tryCode } from '#identity/link-codes.ts'
import { clearGuesses, hashPassword } from '#identity/passwords.ts'
import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import type { User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { acceptableFields } from '../custom-fields/acceptable.ts'
import { bySession, type Caller } from '../door/access.ts'
import { followTicket } from '../email/follow-link.ts'
import { changeNow, type FollowedLink } from '../email/new-address.ts'
import { fail } from '../errors.ts'
import { askedAnonymously, enterByMail, type MailSignIn } from '../magic-link/magic-link.ts'
import type { LinkClick } from '../mailing/link-click.ts'
import { codeTry, expectRight, type TypedCode } from '../mailing/typed-code.ts'
import { acceptablePassword } from '../password/password-policy.ts'
import { storeReset } from '../password/reset.ts'
import { acceptableImage, acceptableName } from '../user-fields.ts'

/** Uses of a code, as clients name them, and the purposes of their tickets. */
export const CODE_TYPES = {
  'sign-in': 'sign-in',
  'email-verification': 'verify-email',
  'forget-password': 'reset-password',
} as const satisfies Readonly<Record<string, MailedPurpose>>

/** Is the code right? It stays valid; a wrong one is counted. */
export const checkCode = (kernel: Kernel, purpose: MailedPurpose, typed: TypedCode): Promise<void> =>
  actOnCode(kernel, codeTry(kernel, [purpose], typed), async (kernel, user, outcome) => {
    const right = expectRight(kernel, user, outcome)
    await returnTry(kernel.db, right, typed.browser)
  })

/** Custom fields are beside these. */
type NewcomerFields = { readonly name?: string | undefined; readonly image?: string | undefined }

/** Opens an account if there is none. */
export function signInByCode(
  kernel: Kernel,
  typed: TypedCode,
  asked: NewcomerFields,
  { caller, context }: Pick<LinkClick, 'caller' | 'context'>,
): Promise<MailSignIn> {
  const { name, image } = asked
  const given = {
    ...acceptableFields(kernel, asked),
    ...(name !== undefined && { name: acceptableName(name) }),
    ...(image !== undefined && { image: acceptableImage(image) }),
  }
  return actOnRightCode(kernel, 'sign-in', typed, (kernel, user, { ticket }) => {
    const { name = '', fields: custom } = ticket.payload
    const fields = { ...custom, name, ...given, email: typed.address }
    const newcomer = kernel.config.auth.email_otp.sign_up ? fields : undefined
    const anonymous = askedAnonymously(ticket, caller)
    const refuse = () => fail('INVALID_OTP')
    return enterByMail(kernel, user, { newcomer, anonymous, method: 'email_otp', refuse }, context)
  })
}

/** Without a page that could ask for the password: what others may have added goes, unless it is typed in a session of the user. */
export const verifyEmailByCode = (
  kernel: Kernel,
  typed: TypedCode,
  click: LinkClick,
): Promise<FollowedLink> =>
  actOnRightCode(kernel, 'verify-email', typed, (kernel, user, { ticket }) => {
    if (user === undefined) throw fail('INVALID_OTP')
    return followTicket(kernel, user, ticket, { ...click, evidence: { by: 'link' } })
  })

/** A wrong code is refused before a password is hashed, or looked up at a service elsewhere. */
export async function resetPasswordByCode(
  kernel: Kernel,
  typed: TypedCode,
  newPassword: string,
): Promise<void> {
  await checkCode(kernel, 'reset-password', typed)
  const password = await hashPassword(kernel, await acceptablePassword(kernel, newPassword))
  await actOnRightCode(kernel, 'reset-password', typed, async (kernel, user) => {
    if (user === undefined) throw fail('INVALID_OTP')
    await storeReset(kernel, user, password)
  })
  await clearGuesses(kernel, typed.address)
}

/** Completes a change of address in the session that has the code of the new one. */
export const changeEmailByCode = (
  kernel: Kernel,
  caller: Caller,
  typed: TypedCode,
  click: LinkClick,
): Promise<FollowedLink> =>
  act(kernel, bySession(caller), async (kernel, { user }) => {
    if (typed.address === user.email) throw fail('EMAIL_IS_THE_SAME')
    // The address is not the user's yet, so that a device of the user counts for it as a stranger.
    const byStranger = { ...typed, source: {} }
    const outcome = await tryCode(kernel, codeTry(kernel, ['change-email'], byStranger), user)
    const right = expectRight(kernel, user, outcome)
    await redeemCode(kernel.db, right)
    return changeNow(kernel, user, { ...click, evidence: { by: 'link' } }, right.ticket)
  })

/** Redeems the code, and runs the work as `act` does; throws when it is not right. */
const actOnRightCode = <P extends MailedPurpose, T>(
  kernel: Kernel,
  purpose: P,
  typed: TypedCode,
  work: (kernel: Kernel, user: User | undefined, right: RightCode<P>) => Promise<T>,
): Promise<T> =>
  actOnCode(kernel, codeTry(kernel, [purpose], typed), async (kernel, user, outcome) => {
    const right = expectRight(kernel, user, outcome)
    await redeemCode(kernel.db, right)
    return work(kernel, user, right)
  })
