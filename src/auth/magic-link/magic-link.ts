import { actOnAddress, actOnAddressTicket } from '#identity/act.ts'
import { findTicket } from '#identity/tickets.ts'
import { findUser, hasProvenEmail, isBanned, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { addUser, newUser } from '../door/add-user.ts'
import { type Admission, admit } from '../door/admit.ts'
import { recordingRefusal } from '../door/record-refusal.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { proveAtSignIn } from '../email/first-proof.ts'
import { ADMISSION_FAILURES, CUSTOM_FIELD_FAILURES, fail } from '../errors.ts'
import type { MailFlow, OpenLink, View } from '../mailing/flow.ts'
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
  view: async (_kernel, link) => signInView(link),
  async act(kernel, { ticket }, { token, click: { context } }) {
    const { admission, isNewUser } = await signInByLink(kernel, token, context)
    const redirectTo = isNewUser ? ticket.payload.newUserCallbackURL : undefined
    return { title: 'signInDone', text: 'signInDoneText', admission, redirectTo }
  },
}

const isOffered = (
  { enabled, sign_up }: { readonly enabled: boolean; readonly sign_up: boolean },
  recipient: object | undefined,
): boolean => enabled && (sign_up || recipient !== undefined)

function signInView({ user, ticket }: OpenLink<'sign-in'>): View {
  const title = 'signInTitle'
  if (user === undefined) {
    const { newUserCallbackURL: leadsTo } = ticket.payload
    return {
      ...{ title, leadsTo, paragraphs: ['signInNewText'] },
      forms: [{ fields: [], button: 'signInNewButton' }],
    }
  }
  const text = hasProvenEmail(user) ? 'signInText' : 'signInFirstText'
  return { title, paragraphs: [text], forms: [{ fields: [], button: 'signInButton' }] }
}

/** Runs in the queue, so that the time of an answer does not show whether an address has an account. */
export const mailSignIn = (
  kernel: Kernel,
  { email: address, name, fields, newUserCallbackURL, source, asked, ...targets }: MailRequest['sign-in'],
): Promise<void> =>
  actOnAddress(kernel, address, async (kernel, user) => {
    const isBarred = user !== undefined && isBanned(user, kernel.now())
    if (isBarred || SIGN_IN.parts?.(kernel.config, user).length === 0)
      return issueDecoy(kernel, SIGN_IN, { address, ...asked })
    const ticket = { userId: null, sessionId: null, address, payload: { name, fields, newUserCallbackURL } }
    const { callbackURL, errorCallbackURL } = targets
    await mailLink(kernel, SIGN_IN, {
      ...{ ticket, recipient: user, source, asked },
      ...{ callbackURL, errorCallbackURL },
    })
  })

const LINK = ['sign-in'] as const
const invalidToken = () => fail('INVALID_TOKEN')

export type MailSignIn = { readonly admission: Admission; readonly isNewUser: boolean }

/** Redeems a link. */
export const signInByLink = (kernel: Kernel, token: string, context: SignInContext): Promise<MailSignIn> =>
  recordingRefusal(
    kernel,
    () => findOwner(kernel, token),
    () =>
      actOnAddressTicket(kernel, { purposes: LINK, token }, invalidToken, async (kernel, user, ticket) => {
        if (ticket.expired) throw fail('TOKEN_EXPIRED')
        const { sign_up } = kernel.config.auth.magic_link
        const { name = '', fields } = ticket.payload
        const newcomer = sign_up ? { ...fields, name, email: ticket.address } : undefined
        return enterByMail(kernel, user, { newcomer, method: 'magic_link', refuse: invalidToken }, context)
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
  readonly method: 'magic_link' | 'email_otp'
  readonly refuse: () => Error
}

/** Signs in who has just shown the mailbox, whose user is locked (act.ts). It proves the address. */
export async function enterByMail(
  kernel: Kernel,
  user: User | undefined,
  { newcomer, method, refuse }: Entrant,
  context: SignInContext,
): Promise<MailSignIn> {
  const owner =
    user === undefined
      ? newcomer && (await addProven(kernel, newcomer, method))
      : await proveAtSignIn(kernel, user)
  if (owner === undefined) throw refuse()
  const entrance = { way: 'mail', shown: ['mail'], proof: { userId: owner.id }, refuse } as const
  return { admission: await admit(kernel, entrance, context), isNewUser: user === undefined }
}

function addProven(kernel: Kernel, fields: Newcomer, method: Entrant['method']): Promise<User> {
  const user = newUser(kernel, fields)
  return addUser(kernel, { ...user, emailVerified: true, emailProvenAt: user.createdAt }, method)
}
