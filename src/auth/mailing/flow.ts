import type { MailedPurpose, UserPurpose } from '#identity/ticket-purposes.ts'
import type { Ticket } from '#identity/tickets.ts'
import type { User } from '#identity/users.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Mail } from '#kernel/mail/mailer.ts'
import type { Admission } from '../door/admit.ts'
import type { TextName } from '../pages/texts.ts'
import type { LinkClick } from './link-click.ts'
import type { MailedLink, Recipient } from './texts.ts'

/** A mail with a one-time link, a code that does the same, or both: its purpose, lifetime and text, and the page that it leads to. */
export type LinkMail<P extends MailedPurpose = MailedPurpose> = {
  readonly purpose: P
  /** Does the page exist? Absent: always. */
  isEnabled?(config: Config): boolean
  /** Milliseconds. */
  lifetime(config: Config): number
  /** The parts of a mail to this recipient; undefined: the address has no account. Absent: a link. */
  parts?(config: Config, recipient: Recipient | undefined): readonly ('link' | 'code')[]
  mail(link: MailedLink & Pick<Ticket<P>, 'address' | 'payload'>): Mail
  /** The endpoint that acts when it is opened, for `auth.email.direct_links`. The token is in the query, or in the place of `:token`. */
  readonly endpoint: string
  /** For `noteLoginMethod`, when the button has started a session. */
  readonly loginMethod?: string
  readonly page: LinkPage
}

/** Such a mail, with the content of its page and the action of the page's button. */
export type MailFlow<P extends MailedPurpose = MailedPurpose> = LinkMail<P> & {
  /** The content of the page for this link. */
  view(kernel: Kernel, link: OpenLink<P>, click: LinkClick): Promise<View>
  /** The action of the button; throws its failure. */
  act(kernel: Kernel, link: OpenLink<P>, pressed: FormClick): Promise<Done>
}

/** The page of a link, `{auth_url}/confirm/NAME`. Opening it changes nothing; its button acts. Flows may share a page. */
export type LinkPage = {
  readonly name: string
  /** `auth.email.links.NAME`: a page of the application to link to instead. */
  readonly setting: keyof Config['auth']['email']['links']
  /** The target of the mailed link, if it is not this page. Opening it changes nothing either. */
  readonly entrance?: string
  /** For the API reference. */
  readonly summary: string
  readonly failures: readonly string[]
  readonly fields: readonly Field[]
  /** Open to a session that lacks the required second factor. */
  readonly withoutSecondFactor?: boolean
  /** Advice when the link does not work any more. */
  readonly askAgain: TextName
}

/** A valid ticket and its user. The ticket of an address may have none. */
export type OpenLink<P extends MailedPurpose> = {
  readonly ticket: Ticket<P>
  readonly user: P extends UserPurpose ? User : User | undefined
}

export type Field = 'password' | 'newPassword'

/** Entered on the page by a person, or sent by an application. */
export type FormValues = { readonly [F in Field]?: string | undefined }

type FormClick = {
  readonly token: string
  readonly click: LinkClick
  readonly values: FormValues
}

export type View = {
  readonly title: TextName
  readonly paragraphs: readonly TextName[]
  readonly forms: readonly Form[]
  /** Where the button leads in the end, if not to the callback. */
  readonly leadsTo?: string | undefined
}

export type Form = {
  /** Above the fields. */
  readonly text?: TextName
  readonly fields: readonly Field[]
  readonly button: TextName
  /** Heading of the form, which is collapsed under it. */
  readonly folded?: TextName
}

export type Done = {
  readonly title: TextName
  readonly text: TextName
  /** The session that the action has started. */
  readonly admission?: Admission | undefined
  /** Where the browser is redirected to, in place of the callback. */
  readonly redirectTo?: string | undefined
  /** The action has ended the session of this browser. */
  readonly isSignedOut?: boolean
}
