import { actOnAddress, actOnAddressTicket } from '#identity/act.ts'
import { lockProvenUser } from '#identity/proof.ts'
import { findTicket, type Ticket } from '#identity/tickets.ts'
import { findUser, hasProvenEmail, isBanned, type User } from '#identity/users.ts'
import { redirectTarget } from '#kernel/http/origins.ts'
import { actingAsUser, type Kernel } from '#kernel/kernel.ts'
import { upgradeByMail } from '../anonymous/upgrade.ts'
import { type Caller, proofOf } from '../door/access.ts'
import { addUser, newUser } from '../door/add-user.ts'
import { type Admission, admit } from '../door/admit.ts'
import { recordingRefusal } from '../door/record-refusal.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { proveAtSignIn } from '../email/first-proof.ts'
import { ADMISSION_FAILURES, CUSTOM_FIELD_FAILURES, fail } from '../errors.ts'
import type { MailFlow, OpenLink, View } from '../mailing/flow.ts'
import type { LinkClick } from '../mailing/link-click.ts'
import { CODE_LIFETIME, issueDecoy } from '../mailing/link-code.ts'
import { mailLink } from '../mailing/links.ts'
import type { MailRequest } from '../mailing/request.ts'
import { MAILS } from '../mailing/texts.ts'

/** Signs in who opens the mailbox, by its link or its code, and opens an account if there is none. */
export const SIGN_IN: MailFlow<'sign-in'> = {
  purpose: 'sign-in',
  isEnabled: ({ auth }) => auth.magic_link.enabled,
  lifetime: ({ auth }) => (auth.magic_link.enabled ? auth.magic_link.expires_in : CODE_LIFETIME),
  parts: ({ auth: { magic_link, email_otp } }, recipient) => [
    ...(isOffered(magic_link, recipient) ? (['link'] as const) : []),
    ...(isOffered(email_otp, recipient) ? (['code'] as const) : []),
  ],
  mail: MAILS.signIn,
  endpoint: '/magic-link/verify',
  loginMethod: 'magic-link',
  page: {
    name: 'magic-link',
    setting: 'magic_link',
    summary: 'Sign in',
    failures: ['INVALID_TOKEN', 'TOKEN_EXPIRED', ...CUSTOM_FIELD_FAILURES, ...ADMISSION_FAILURES],
    fields: [],
    askAgain: 'askAgainSignIn',
  },
  view: async (kernel, link) => signInView(kernel, link),
  async act(kernel, { ticket }, { token, click }) {
    const { admission, isNewUser } = await signInByLink(kernel, token, click)
    const redirectTo = isNewUser ? newUserTarget(kernel, ticket) : undefined
    return { title: 'signInDone', text: 'signInDoneText', admission, redirectTo }
  },
}

const isOffered = (
  { enabled, sign_up }: { readonly enabled: boolean; readonly sign_up: boolean },
  recipient: object | undefined,
): boolean => enabled && (sign_up || recipient !== undefined)

/** Judged again: the settings may trust its origin no more. */
function newUserTarget(kernel: Kernel, { payload }: Ticket<'sign-in'>): string | undefined {
  const { newUserCallbackURL } = payload
  return newUserCallbackURL === undefined ? undefined : redirectTarget(kernel, newUserCallbackURL)
}

function signInView(kernel: Kernel, { user, ticket }: OpenLink<'sign-in'>): View {
  const title = 'signInTitle'
  if (user === undefined) {
    const leadsTo = newUserTarget(kernel, ticket)
    return {
      ...{ title, leadsTo, paragraphs: ['signInNewText'] },
      forms: [{ fields: [], button: 'signInNewButton' }],
    }
  }
  const text = hasProvenEmail(user) ? 'signInText' : 'signInFirstText'
  return { title, paragraphs: [text], forms: [{ fields: [], button: 'signInButton' }] }
}

/** Runs in the queue, so that the time of an answer does not show whether an address has an account. */
export const mailSignIn = (kernel: Kernel, request: MailRequest['sign-in']): Promise<void> => {
  const { email: address, source, asked } = request
  return actOnAddress(kernel, address, async (kernel, user) => {
    const isBarred = user !== undefined && isBanned(user, kernel.now())
    // A user has asked who had the address. A change ends its links, and one more would add a user without a captcha (protection.ts).
    const hasLeft = user === undefined && source.sessionId !== undefined
    if (isBarred || hasLeft || SIGN_IN.parts?.(kernel.config, user).length === 0)
      return issueDecoy(kernel, SIGN_IN, { address, ...asked })
    const { name, fields, newUserCallbackURL, anonymousId, callbackURL, errorCallbackURL } = request
    const payload = { name, fields, newUserCallbackURL, anonymousId }
    const ticket = { userId: null, sessionId: null, address, payload }
    await mailLink(kernel, SIGN_IN, {
      ...{ ticket, recipient: user, source, asked },
      ...{ callbackURL, errorCallbackURL },
    })
  })
}

const LINK = ['sign-in'] as const
const invalidToken = () => fail('INVALID_TOKEN')

export type MailSignIn = { readonly admission: Admission; readonly isNewUser: boolean }

/** Redeems a link. */
export const signInByLink = (
  kernel: Kernel,
  token: string,
  { caller, context }: Pick<LinkClick, 'caller' | 'context'>,
): Promise<MailSignIn> =>
  recordingRefusal(
    kernel,
    () => findOwner(kernel, token),
    () =>
      actOnAddressTicket(kernel, { purposes: LINK, token }, invalidToken, async (kernel, user, ticket) => {
        if (ticket.expired) throw fail('TOKEN_EXPIRED')
        const { sign_up } = kernel.config.auth.magic_link
        const { name = '', fields } = ticket.payload
        const newcomer = sign_up ? { ...fields, name, email: ticket.address } : undefined
        const anonymous = askedAnonymously(ticket, caller)
        const entrant = { newcomer, anonymous, method: 'magic_link', refuse: invalidToken } as const
        return enterByMail(kernel, user, entrant, context)
      }),
  )

/** The user of the link's address. */
async function findOwner(kernel: Kernel, token: string): Promise<string | undefined> {
  const address = (await findTicket(kernel, LINK, token))?.address
  return address === undefined ? undefined : (await findUser(kernel.db, 'email', address))?.id
}

/** Custom fields are beside these. */
type Newcomer = { readonly name: string; readonly email: string; readonly image?: string | null }

type Entrant = {
  /** The user to add if the address has no account. Undefined: none is added. */
  readonly newcomer: Newcomer | undefined
  /** The anonymous user who gets the address in place of that. */
  readonly anonymous: Caller | undefined
  readonly method: 'magic_link' | 'email_otp'
  readonly refuse: () => Error
}

/**
 * The caller, if the mail was asked for in a session of the same anonymous user. A link that another has asked for, and sends to the user,
 * must not hand the user's content over with the address of its sender.
 */
export const askedAnonymously = (
  { payload }: Ticket<'sign-in'>,
  caller: Caller | undefined,
): Caller | undefined =>
  caller?.user.isAnonymous === true && payload.anonymousId === caller.user.id ? caller : undefined

/** Signs in who has just shown the mailbox, whose user is locked (act.ts). It proves the address. */
export async function enterByMail(
  kernel: Kernel,
  user: User | undefined,
  entrant: Entrant,
  context: SignInContext,
): Promise<MailSignIn> {
  const { refuse } = entrant
  const owner = user === undefined ? await openAccount(kernel, entrant) : await proveAtSignIn(kernel, user)
  if (owner === undefined) throw refuse()
  const entrance = { way: 'mail', shown: ['mail'], proof: { userId: owner.id }, refuse } as const
  return { admission: await admit(kernel, entrance, context), isNewUser: user === undefined }
}

/** Of the anonymous user, while the session lives; else of a new one. */
async function openAccount(
  kernel: Kernel,
  { newcomer, anonymous: caller, method }: Entrant,
): Promise<User | undefined> {
  if (newcomer === undefined) return undefined
  const user = caller && (await lockProvenUser(kernel, proofOf(caller)))
  if (user?.isAnonymous === true) return upgradeByMail(actingAsUser(kernel, user.id), user, newcomer, method)
  const added = newUser(kernel, newcomer)
  return addUser(kernel, { ...added, emailVerified: true, emailProvenAt: added.createdAt }, method)
}
