import type { Source } from '#identity/known-devices.ts'
import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import { findTicket, issueTicket, type NewTicket } from '#identity/tickets.ts'
import { findUser, type User } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { type Mail, sendMail } from '#kernel/mail/mailer.ts'
import { authUrl } from '../auth-url.ts'
import { fail } from '../errors.ts'
import { withQuery } from '../redirect.ts'
import { allowsMail, allowsMailFrom } from './allowance.ts'
import type { LinkMail, OpenLink } from './flow.ts'
import { CODE_LIFETIME, type CodeBrowser, newLinkCode, withoutCode } from './link-code.ts'
import type { Recipient } from './texts.ts'

type NewLink<P extends MailedPurpose> = {
  readonly ticket: Omit<NewTicket<P>, 'lifetime' | 'code'>
  /** Undefined: the address has no account. */
  readonly recipient: (Recipient & Pick<User, 'id'>) | undefined
  readonly callbackURL: string | undefined
  readonly errorCallbackURL?: string | undefined
  /** The browser that asks, if the recipient may be the one. The session that asks is the ticket's. */
  readonly source?: Source | undefined
  /** The browser that asks for a code. */
  readonly asked?: CodeBrowser | undefined
  /** Another text than the flow's. */
  readonly mail?: LinkMail<P>['mail']
  /** In place of `sendMail`. */
  readonly deliver?: (kernel: Kernel, mail: Mail) => Promise<void>
}

/**
 * Mails a one-time link, a code or both, unless the recipient has had too many mails already. The row of a code is there all the same: tries
 * at it must not show whether one was mailed.
 */
export async function mailLink<P extends MailedPurpose>(
  kernel: Kernel,
  flow: LinkMail<P>,
  { ticket, recipient, source = {}, asked, mail = flow.mail, deliver = sendMail, ...targets }: NewLink<P>,
): Promise<void> {
  const { address, payload, sessionId } = ticket
  const owner = recipient?.email === address ? recipient : undefined
  const from = { sessionId: sessionId ?? undefined, ...source }
  const parts = flow.parts?.(kernel.config, recipient) ?? ['link']
  const asker = { ...asked, source: from, userId: owner?.id }
  const mayHaveCode = flow.parts !== undefined && kernel.config.auth.email_otp.enabled
  const code = mayHaveCode ? await newLinkCode(kernel, { purpose: flow.purpose, address }, asker) : undefined
  if (!parts.includes('link') && code === undefined) return
  const isAllowed = await (owner ? allowsMailFrom(kernel, owner, from) : allowsMail(kernel, address))
  if (!isAllowed && code === undefined) return
  const lifetime = flow.lifetime(kernel.config)
  const mailedCode = isAllowed && parts.includes('code') ? code : undefined
  const columns = mailedCode?.columns ?? (code && withoutCode(kernel, code.columns))
  const token = await issueTicket(kernel, flow.purpose, { ...ticket, lifetime, code: columns })
  if (!isAllowed) return
  const url = parts.includes('link') ? linkOf(kernel, flow, token, targets) : undefined
  const to = recipient ?? { name: '', email: address, emailProvenAt: null }
  const mailed = { url, lifetime, code: mailedCode && { code: mailedCode.code, lifetime: CODE_LIFETIME } }
  await deliver(kernel, mail({ recipient: to, address, payload, ...mailed }))
}

function linkOf(
  kernel: Kernel,
  { endpoint, page }: Pick<LinkMail, 'endpoint' | 'page'>,
  token: string,
  { callbackURL, errorCallbackURL }: Pick<NewLink<MailedPurpose>, 'callbackURL' | 'errorCallbackURL'>,
): string {
  const { links, direct_links } = kernel.config.auth.email
  const target = links[page.setting]
  const targets = { callbackURL, errorCallbackURL }
  const query = { token, ...targets }
  if (target !== undefined) return withQuery(target, query)
  const path = direct_links ? endpoint : (page.entrance ?? `/confirm/${page.name}`)
  return path.includes(':token')
    ? authUrl(kernel, path.replace(':token', token), targets)
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
