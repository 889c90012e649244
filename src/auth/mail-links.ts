import { issueTicket, type NewTicket, type TicketPurpose } from '#identity/tickets.ts'
import type { User } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Mail, sendMail } from '#kernel/mail/mailer.ts'
import { authUrl } from './auth-url.ts'
import { mails } from './mails.ts'
import { withQuery } from './redirect.ts'

type Sent<P extends TicketPurpose> = Omit<NewTicket<P>, 'userId' | 'lifetime'>

type MailLink<P extends TicketPurpose> = {
  /** `auth.email.links.NAME`: a page of the application to link to instead. */
  readonly setting: keyof Config['auth']['email']['links']
  /** What the mail links to: opening it changes nothing. `:token`: the token stands there, else in the query. */
  readonly page: string
  /** The endpoint that acts as soon as it is opened, for `auth.email.direct_links`. */
  readonly endpoint: string
  /** Milliseconds. */
  readonly lifetime: (config: Config) => number
  readonly mail: (user: User, sent: Sent<P>, url: string, lifetime: number) => Mail
}

const HOUR = 3_600_000
const verificationLife = ({ auth }: Config) => auth.email.verification_expires_in

/** Every link that is mailed: one entry each. The pages are in confirm/flows.ts. */
const MAIL_LINKS: { readonly [P in TicketPurpose]: MailLink<P> } = {
  'verify-email': {
    setting: 'verify',
    page: '/confirm/verify-email',
    endpoint: '/verify-email',
    lifetime: verificationLife,
    mail: (user, _sent, url, lifetime) => mails.verifyEmail(user, url, lifetime),
  },
  'confirm-change-email': {
    setting: 'change',
    page: '/confirm/change-email',
    endpoint: '/verify-email',
    lifetime: verificationLife,
    mail: (user, { payload }, url, lifetime) =>
      mails.confirmChangeEmail(user, payload.newEmail, url, lifetime),
  },
  'change-email': {
    setting: 'change',
    page: '/confirm/change-email',
    endpoint: '/verify-email',
    lifetime: verificationLife,
    mail: (_user, { address }, url, lifetime) => mails.changeEmail(address, url, lifetime),
  },
  'delete-user': {
    setting: 'delete',
    page: '/confirm/delete-user',
    endpoint: '/delete-user/callback',
    lifetime: () => 24 * HOUR,
    mail: (user, _sent, url, lifetime) => mails.deleteUser(user, url, lifetime),
  },
  // This endpoint consumes nothing: it leads to the callback, or a browser to the page of this flow.
  'reset-password': {
    setting: 'reset',
    page: '/reset-password/:token',
    endpoint: '/reset-password/:token',
    lifetime: () => HOUR,
    mail: (user, _sent, url, lifetime) => mails.resetPassword(user, url, lifetime),
  },
}

type Compose = (user: User, url: string, lifetime: number) => Mail
type More = {
  readonly callbackURL: string | undefined
  /** A mail with another occasion than the table's. */
  readonly compose?: Compose
  /** Instead of sending it as it is. */
  readonly deliver?: (kernel: Kernel, mail: Mail) => Promise<void>
}

/** Mails a one-time link, unless the recipient has had too many mails already. */
export async function mailLink<P extends TicketPurpose>(
  kernel: Kernel,
  purpose: P,
  user: User,
  { callbackURL, compose, deliver = sendMail, ...sent }: Sent<P> & More,
): Promise<void> {
  if (!(await kernel.limits.allows('mail_recipient', sent.address))) return
  // The entry of P; the compiler does not see that what is left of `sent` is Sent<P>.
  const link: MailLink<P> = MAIL_LINKS[purpose]
  const ticket = sent as unknown as Sent<P>
  const lifetime = link.lifetime(kernel.config)
  const token = await issueTicket(kernel, purpose, { ...ticket, userId: user.id, lifetime })
  const url = urlOf(kernel, link, token, callbackURL)
  await deliver(kernel, compose?.(user, url, lifetime) ?? link.mail(user, ticket, url, lifetime))
}

type Places = Pick<MailLink<TicketPurpose>, 'setting' | 'page' | 'endpoint'>

function urlOf(kernel: Kernel, to: Places, token: string, callbackURL: string | undefined): string {
  const { links, direct_links } = kernel.config.auth.email
  const own = links[to.setting]
  const query = { token, ...(callbackURL !== undefined && { callbackURL }) }
  if (own !== undefined) return withQuery(own, query)
  const path = direct_links ? to.endpoint : to.page
  return path.includes(':token')
    ? authUrl(kernel, path.replace(':token', token), { callbackURL })
    : authUrl(kernel, path, query)
}
