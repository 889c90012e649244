import type { Source } from '#identity/known-devices.ts'
import { findTicket, issueTicket, type MailedPurpose, type NewTicket } from '#identity/tickets.ts'
import { findUser } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Mail, sendMail } from '#kernel/mail/mailer.ts'
import { authUrl } from '../auth-url.ts'
import { fail } from '../errors.ts'
import { withQuery } from '../redirect.ts'
import { allowsMail, allowsMailFrom } from './allowance.ts'
import type { MailFlow, OpenLink } from './flow.ts'
import type { Recipient } from './texts.ts'

type NewLink<P extends MailedPurpose> = {
  readonly ticket: Omit<NewTicket<P>, 'lifetime'>
  /** Undefined: the address has no account. */
  readonly recipient: Recipient | undefined
  readonly callbackURL: string | undefined
  /** The browser that asks, if the recipient may be the one. The session that asks is the ticket's. */
  readonly source?: Source | undefined
  /** Another text than the flow's. */
  readonly mail?: MailFlow<P>['mail']
  /** In place of `sendMail`. */
  readonly deliver?: (kernel: Kernel, mail: Mail) => Promise<void>
}

/** Mails a one-time link, unless the recipient has had too many mails already. */
export async function mailLink<P extends MailedPurpose>(
  kernel: Kernel,
  flow: MailFlow<P>,
  { ticket, recipient, callbackURL, source = {}, mail = flow.mail, deliver = sendMail }: NewLink<P>,
): Promise<void> {
  const { address, payload, userId, sessionId } = ticket
  const isOwn = userId !== null && recipient?.email === address
  const from = { sessionId: sessionId ?? undefined, ...source }
  const isAllowed = isOwn
    ? allowsMailFrom(kernel, { ...recipient, id: userId }, from)
    : allowsMail(kernel, address)
  if (!(await isAllowed)) return
  const lifetime = flow.lifetime(kernel.config)
  const token = await issueTicket(kernel, flow.purpose, { ...ticket, lifetime })
  const url = linkOf(kernel, flow, token, callbackURL)
  const to = recipient ?? { name: '', email: address, emailProvenAt: null }
  await deliver(kernel, mail({ recipient: to, address, payload, url, lifetime }))
}

function linkOf(
  kernel: Kernel,
  { endpoint, page }: Pick<MailFlow, 'endpoint' | 'page'>,
  token: string,
  callbackURL: string | undefined,
): string {
  const { links, direct_links } = kernel.config.auth.email
  const target = links[page.setting]
  const query = { token, callbackURL }
  if (target !== undefined) return withQuery(target, query)
  const path = direct_links ? endpoint : (page.entrance ?? `/confirm/${page.name}`)
  return path.includes(':token')
    ? authUrl(kernel, path.replace(':token', token), { callbackURL })
    : authUrl(kernel, path, query)
}

/** The ticket of a mailed token and its user. The ticket stays. Throws when the token is not valid. */
export async function openLink<P extends MailedPurpose>(
  kernel: Kernel,
  purposes: readonly P[],
  token: string,
): Promise<OpenLink<P>> {
  const ticket = await findTicket(kernel, purposes, token)
  if (ticket === undefined) throw fail('INVALID_TOKEN')
  const { userId, address } = ticket
  const user = await (userId === null
    ? findUser(kernel.db, 'email', address)
    : findUser(kernel.db, 'id', userId))
  if (userId !== null && user === undefined) throw fail('INVALID_TOKEN')
  if (ticket.expired) throw fail('TOKEN_EXPIRED')
  // A ticket without a user is one of an address.
  return { ticket, user: user as OpenLink<P>['user'] }
}
