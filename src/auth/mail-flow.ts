import type { Ticket, TicketPurpose, UserPurpose } from '#identity/tickets.ts'
import type { User } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Mail } from '#kernel/mail/mailer.ts'
import type { Admission } from './admit.ts'
import type { LinkClick } from './link-click.ts'
import type { MailedLink } from './mails.ts'
import type { TextName } from './pages/texts.ts'

/** A mail with a one-time link: what is mailed, for how long it is good, the page that it leads to, and what the page's button does. */
export type MailFlow<P extends TicketPurpose = TicketPurpose> = {
  readonly purpose: P
  /** Milliseconds. */
  lifetime(config: Config): number
  mail(link: MailedLink & Pick<Ticket<P>, 'address' | 'payload'>): Mail
  /** The endpoint that acts as soon as it is opened, for `auth.email.direct_links`. The token is in the query, or at `:token`. */
  readonly endpoint: string
  readonly page: LinkPage
  /** What the page of this link shows. */
  view(kernel: Kernel, link: OpenLink<P>, click: LinkClick): Promise<View>
  /** What the button does; throws what has failed. */
  act(kernel: Kernel, link: OpenLink<P>, pressed: Pressed): Promise<Done>
}

/** The page of a link, `{auth_url}/confirm/NAME`. Opening it changes nothing, its button does. Two flows may share one. */
export type LinkPage = {
  readonly name: string
  /** `auth.email.links.NAME`: a page of the application that is linked to instead. */
  readonly setting: keyof Config['auth']['email']['links']
  /** What the mail links to, where that is not this page. Opening it changes nothing. */
  readonly entrance?: string
  /** For the API reference. */
  readonly summary: string
  readonly failures: readonly string[]
  readonly fields: readonly Field[]
  /** What to do when the link does not work any more. */
  readonly askAgain: TextName
}

/** A ticket that its token would redeem. That of an address may have no user. */
export type OpenLink<P extends TicketPurpose> = {
  readonly ticket: Ticket<P>
  readonly user: P extends UserPurpose ? User : User | undefined
}

export type Field = 'password' | 'newPassword'

/** What a person enters on the page, or an application sends in its place. */
export type FormValues = { readonly [F in Field]?: string | undefined }

export type Pressed = {
  readonly token: string
  readonly click: LinkClick
  readonly values: FormValues
}

export type View = {
  readonly title: TextName
  readonly says: readonly TextName[]
  readonly forms: readonly Form[]
}

export type Form = {
  /** Above the fields. */
  readonly says?: TextName
  readonly fields: readonly Field[]
  readonly button: TextName
  /** Under this heading, folded away. */
  readonly folded?: TextName
}

export type Done = {
  readonly title: TextName
  readonly says: TextName
  /** The session that has begun. */
  readonly admission?: Admission | undefined
  /** The session of this browser has ended. */
  readonly isSignedOut?: boolean
}
