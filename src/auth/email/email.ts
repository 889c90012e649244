import { act, actOnTicket } from '#identity/act.ts'
import { redeemCode, tryCode } from '#identity/link-codes.ts'
import { tell } from '#identity/tell.ts'
import type { SignUpMark, WaitingPassword } from '#identity/ticket-purposes.ts'
import { deleteTicketsFor, type Ticket } from '#identity/tickets.ts'
import { findUser, hasProvenEmail, type User } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import { Failure } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { sendMail } from '#kernel/mail/mailer.ts'
import { expectOpenSignUp } from '../anonymous/upgrade.ts'
import { fieldsOfKnown } from '../custom-fields/acceptable.ts'
import { bySession, type Caller } from '../door/access.ts'
import { type Admission, admit, type Entrance } from '../door/admit.ts'
import { expectShown, recordShown, standsForMailbox } from '../door/demands.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail, LINK_FAILURES, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import { noticeTo } from '../mailing/allowance.ts'
import type { FormValues, MailFlow } from '../mailing/flow.ts'
import type { LinkClick } from '../mailing/link-click.ts'
import { type CodeBrowser, withCode } from '../mailing/link-code.ts'
import { mailLink, openLink } from '../mailing/links.ts'
import { type MailRequest, requestMail } from '../mailing/request.ts'
import { MAILS } from '../mailing/texts.ts'
import { codeTry, expectRight, type TypedCode } from '../mailing/typed-code.ts'
import { checkPassword } from '../password/password.ts'
import { showCode } from '../two-factor/verification.ts'
import { acceptableEmail } from '../user-fields.ts'
import { type ProvingClick, proveEmail, readEvidence } from './first-proof.ts'
import { changeNow, type FollowedLink } from './new-address.ts'
import { type ProofTexts, proofView } from './proof-view.ts'

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
  const followed = await follow(kernel, user, ticket, click)
  // An attacker may send a victim the link of the attacker's own account. It must not sign the victim in to that account,
  // neither from the attacker's page nor by our button, which asks for no password when the address is proven already.
  const mayStart = click.caller === undefined && !click.context.isCrossSite && !hasProvenEmail(user)
  const signsIn = kernel.config.auth.email.sign_in_after_verification && mayStart
  if (!signsIn || ticket.purpose !== 'verify-email') return followed
  const proof = { userId: user.id }
  const entrance = { way: 'mail', shown: ['mail'], proof, refuse: invalidToken } as const
  return { ...followed, admission: await admitUnlessByPassword(kernel, entrance, click.context) }
}

/** Undefined for a user who has to sign in with the password, or whom a hook refuses. The address is proven all the same. */
async function admitUnlessByPassword(
  kernel: Kernel,
  entrance: Entrance,
  context: SignInContext,
): Promise<Admission | undefined> {
  try {
    return await admit(kernel, entrance, context)
  } catch (error) {
    if (error instanceof Failure && WITHOUT_SESSION.has(error.code)) return undefined
    throw error
  }
}

const WITHOUT_SESSION: ReadonlySet<string> = new Set(['PASSWORD_SIGN_IN_REQUIRED', 'REFUSED_BY_HOOK'])

async function follow(
  kernel: Kernel,
  user: User,
  ticket: EmailTicket,
  click: ProvingClick,
): Promise<FollowedLink> {
  // The payloads of these purposes.
  const { purpose, payload, sessionId } = ticket
  if (purpose === 'change-email') return changeNow(kernel, user, click, ticket as Ticket<'change-email'>)
  const followed =
    purpose === 'verify-email'
      ? await proveEmail(kernel, user, click, payload as SignUpMark)
      : await mailNewAddress(kernel, { user, sessionId }, payload as NewAddress)
  return { user: followed, admission: undefined }
}

type NewAddress = { readonly newEmail: string; readonly callbackURL?: string | undefined }
type ChangeEmail = NewAddress & {
  readonly password?: string | undefined
  /** Of the second factor. */
  readonly code?: string | undefined
  /** Of a mail to the old address: it allows the change. */
  readonly otp?: TypedCode | undefined
  /** The change is completed by a code. */
  readonly asked?: CodeBrowser | undefined
}

/**
 * Begins a change of address and ends one that was begun before. A session could be stolen, so a proven address has to allow the
 * change by a link; the password makes that link unnecessary, together with a code of the second factor if there is one, unless it is new.
 * Of an unproven account a proof is demanded. The answer does not show whether the new address has an account.
 */
export async function changeEmail(kernel: Kernel, caller: Caller, asked: ChangeEmail): Promise<void> {
  const newEmail = acceptableEmail(asked.newEmail)
  if (newEmail === caller.user.email) throw fail('EMAIL_IS_THE_SAME')
  const { password, code, otp } = asked
  const proven = password === undefined ? caller : await checkPassword(kernel, caller, password)
  await act(kernel, bySession(proven), async (kernel, { user }) => {
    if (user.isAnonymous) expectMayBecomeKnown(kernel, user)
    const ofFactor = code === undefined ? [] : [await showCode(kernel, user, caller.session, code)]
    const inBody = [...(password === undefined ? [] : (['password'] as const)), ...ofFactor]
    const standing = await recordShown(kernel, caller.session, inBody)
    if (!hasProvenEmail(user)) await expectShown(kernel, caller.session, 'changeUnprovenEmail')
    const from = { user, sessionId: caller.session.id }
    const to = { newEmail, callbackURL: asked.callbackURL, asked: asked.asked }
    const isConfirmed = otp !== undefined && (await redeemConfirmation(kernel, user, otp, newEmail))
    await deleteTicketsFor(kernel.db, user.id, CHANGE)
    await tell(kernel, 'email.change_requested', { targetId: user.id })
    const isAllowed = isConfirmed || !hasProvenEmail(user) || standsForMailbox(kernel, standing, inBody)
    await (isAllowed ? mailNewAddress(kernel, from, to) : mailOldAddress(kernel, from, to))
  })
}

/** Before a mail is sent that could not be followed. */
function expectMayBecomeKnown(kernel: Kernel, user: User): void {
  expectOpenSignUp(kernel, 'email')
  fieldsOfKnown(kernel, user)
}

const CHANGE = ['confirm-change-email', 'change-email'] as const

/** A code of the mail about this change, or one that was asked for to confirm the address. */
async function redeemConfirmation(
  kernel: Kernel,
  user: User,
  otp: TypedCode,
  newEmail: string,
): Promise<boolean> {
  const typed = { ...otp, address: user.email }
  const ofChange = await tryCode(kernel, codeTry(kernel, 'confirm-change-email', typed), user)
  if (typeof ofChange === 'object' && 'ticket' in ofChange && ofChange.ticket.payload.newEmail === newEmail) {
    await redeemCode(kernel.db, ofChange)
    return true
  }
  const ofAddress = await tryCode(kernel, codeTry(kernel, 'verify-email', typed), user)
  await redeemCode(kernel.db, expectRight(kernel, user, ofAddress))
  return true
}

/** The user whose address changes, and the session that asked: the links end with it. */
type AddressChange = { readonly user: User; readonly sessionId: string | null }

function mailOldAddress(
  kernel: Kernel,
  { user, sessionId }: AddressChange,
  { newEmail, callbackURL, asked }: NewAddress & Pick<ChangeEmail, 'asked'>,
): Promise<void> {
  const payload = callbackURL === undefined ? { newEmail } : { newEmail, callbackURL }
  const ticket = { userId: user.id, sessionId, address: user.email, payload }
  return mailLink(kernel, CONFIRM_CHANGE_EMAIL, { ticket, recipient: user, callbackURL, asked })
}

/** Begins to add an address and a password to an anonymous user, and ends an attempt that was begun before. */
export async function beginNewAddress(
  kernel: Kernel,
  from: AddressChange,
  to: NewAddress & { readonly waiting: WaitingPassword },
): Promise<void> {
  await deleteTicketsFor(kernel.db, from.user.id, CHANGE)
  await tell(kernel, 'email.change_requested', { targetId: from.user.id })
  await mailNewAddress(kernel, from, to)
}

/**
 * The old address gets a notice if it is proven; the new one gets its link only when it has no account. The queue decides that, so
 * that the time of the answer does not show it.
 */
async function mailNewAddress(
  kernel: Kernel,
  { user, sessionId }: AddressChange,
  {
    newEmail: address,
    callbackURL,
    asked,
    waiting,
  }: NewAddress & Pick<ChangeEmail, 'asked'> & { readonly waiting?: WaitingPassword },
): Promise<User> {
  await noticeTo(kernel, user, MAILS.emailIsChanging(user, address))
  await mailLink(kernel, CHANGE_EMAIL, {
    ticket: { userId: user.id, sessionId, address, payload: waiting ?? {} },
    recipient: user,
    ...{ callbackURL, asked },
    deliver: (kernel, mail) => requestMail(kernel, 'change-email', { email: address, mail }),
  })
  return user
}

/** The queue's side. A link that is not sent opens nothing, since its token is known to no one. */
export async function mailUnlessTaken(
  kernel: Kernel,
  { email, mail }: MailRequest['change-email'],
): Promise<void> {
  if ((await findUser(kernel.db, 'email', email)) === undefined) await sendMail(kernel, mail)
}

/** Common to the mails of both steps of a change. */
const CHANGE_LINK = {
  lifetime: ({ auth }: Config) => auth.email.verification_expires_in,
  parts: withCode,
  endpoint: '/verify-email',
  page: {
    name: 'change-email',
    setting: 'change',
    summary: 'Change an address',
    failures: [...LINK_FAILURES, ...PASSWORD_POLICY_FAILURES],
    fields: ['password', 'newPassword'],
    askAgain: 'askAgainChange',
  },
} as const

/** Allows the change, by a link to the old address. */
export const CONFIRM_CHANGE_EMAIL: MailFlow<'confirm-change-email'> = {
  ...CHANGE_LINK,
  purpose: 'confirm-change-email',
  mail: MAILS.confirmChangeEmail,
  view: async () => ({
    title: 'changeTitle',
    paragraphs: ['changeOldText', 'changeOldNext'],
    forms: [{ fields: [], button: 'changeOldButton' }],
  }),
  async act(kernel, _link, { token, click }) {
    // This click proves only that the mail has arrived, so it brings no password.
    await confirmEmailLink(kernel, token, click, {})
    return { title: 'changeOldDone', text: 'changeOldDoneText' }
  },
}

/** Completes the change, by a link to the new address. */
export const CHANGE_EMAIL: MailFlow<'change-email'> = {
  ...CHANGE_LINK,
  purpose: 'change-email',
  mail: MAILS.changeEmail,
  view: (kernel, link, click) => proofView(kernel, link, click, CHANGE_TEXTS),
  async act(kernel, _link, { token, click, values }) {
    const { admission } = await confirmEmailLink(kernel, token, click, values)
    return { title: 'changeNewDone', text: 'changeNewDoneText', admission }
  },
}

const CHANGE_TEXTS: ProofTexts = {
  title: 'changeTitle',
  text: 'changeNewText',
  button: 'changeNewButton',
  proveText: 'changeProveText',
  chooseText: 'changeChooseText',
  chooseFirstText: 'changeChooseFirstText',
  chooseButton: 'changeChooseButton',
}
