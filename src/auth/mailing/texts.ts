import { hasProvenEmail, type User } from '#identity/users.ts'
import type { Mail } from '#kernel/mail/mailer.ts'
import { composeMail } from '#kernel/mail/messages.ts'

export type Recipient = Pick<User, 'name' | 'email' | 'emailProvenAt'>

/** A link in a mail, a code, or both. */
export type MailedLink = {
  readonly recipient: Recipient
  readonly url: string | undefined
  /** Milliseconds for which it is valid. */
  readonly lifetime: number
  readonly code?: MailedCode | undefined
}
type MailedCode = { readonly code: string; readonly lifetime: number }

/** An invitation to an organization. */
type MailedInvitation = Pick<MailedLink, 'recipient' | 'lifetime'> & {
  readonly url: string
  readonly organization: { readonly name: string }
  readonly inviter: Recipient
  readonly role: string
}

/** An unproven address may be a stranger's. Mails to it contain no text of a caller, since a name could be an advertisement. */
const greeting = (user: Recipient): string =>
  hasProvenEmail(user) && user.name !== '' ? `Hello ${user.name},` : 'Hello,'
const addressFor = (user: Recipient, email: string): string => (hasProvenEmail(user) ? email : 'another one')

const minutesOf = (lifetime: number): string =>
  lifetime < 7_200_000
    ? `${Math.round(lifetime / 60_000)} minutes`
    : `${Math.round(lifetime / 3_600_000)} hours`

/** `otherwise`: advice for a recipient who did not ask for it. */
const linkText = ({ url, lifetime }: MailedLink, otherwise: string): string =>
  url === undefined ? otherwise : `The link works once, for ${minutesOf(lifetime)}. ${otherwise}`

const codeText = ({ url, code: mailed }: MailedLink): readonly string[] => {
  if (mailed === undefined) return []
  const { code, lifetime } = mailed
  const inPlace = url === undefined ? 'The' : 'In place of the link you can type a code. The'
  return [`${inPlace} code is ${code}. It works once, for ${minutesOf(lifetime)}. Give it to nobody.`]
}

const button = (label: string, { url }: MailedLink) => url !== undefined && { action: { label, url } }

/** The sessions that a change of password has ended. */
export type EndedSessions = 'all' | 'others' | 'none'

const SESSIONS: Readonly<Record<EndedSessions, string>> = {
  all: 'Every session of the account was ended.',
  others: 'Every other session of the account was ended.',
  none: 'Sessions on other devices stay signed in.',
}

/** A link to choose a new password. `otherwise`: advice for a recipient who did not ask for it. */
function newPasswordMail(subject: string, { why, otherwise }: { why: string; otherwise: string }) {
  return (link: MailedLink): Mail =>
    composeMail({
      to: link.recipient.email,
      subject,
      paragraphs: [
        greeting(link.recipient),
        `someone, hopefully you, ${why}`,
        ...codeText(link),
        linkText(link, `If it was not you, ${otherwise}`),
      ],
      ...button('Choose a new password', link),
    })
}

/** `codes`: new backup codes. `reset`: by an operator, with the passkeys. */
export type FactorChange = 'enabled' | 'disabled' | 'codes' | 'reset'

const FACTOR_CHANGES: Readonly<Record<FactorChange, string>> = {
  enabled: 'two-factor authentication was set up for your account.',
  disabled: 'two-factor authentication was turned off for your account.',
  codes: 'the backup codes of your account were replaced. The old ones do not work any more.',
  reset:
    'an operator has removed two-factor authentication and the passkeys of your account, and has ended all its sessions.',
}

/** Every mail of the authentication surface, one entry each. */
export const MAILS = {
  verifyEmail: (link: MailedLink): Mail =>
    composeMail({
      to: link.recipient.email,
      subject: 'Verify your email address',
      paragraphs: [
        greeting(link.recipient),
        'please confirm that this address is yours.',
        ...codeText(link),
        linkText(link, 'If you did not sign up, ignore this mail.'),
      ],
      ...button('Verify email', link),
    }),
  confirmMailbox: (link: MailedLink): Mail =>
    composeMail({
      to: link.recipient.email,
      subject: 'Your code',
      paragraphs: [
        greeting(link.recipient),
        'someone, hopefully you, wants to confirm that this address is yours, for example to change the address of the account.',
        ...codeText(link),
        'If it was not you, ignore this mail.',
      ],
    }),
  /** The address may have no account. */
  signIn: (link: MailedLink): Mail =>
    composeMail({
      to: link.recipient.email,
      subject: 'Sign in',
      paragraphs: [
        greeting(link.recipient),
        'someone, hopefully you, wants to sign in with this address.',
        ...codeText(link),
        linkText(link, 'If it was not you, ignore this mail.'),
      ],
      ...button('Sign in', link),
    }),
  alreadyRegistered: (user: Recipient): Mail =>
    composeMail({
      to: user.email,
      subject: 'You already have an account',
      paragraphs: [
        greeting(user),
        'someone, hopefully you, signed up with this address. It already has an account, which stays as it was.',
        'Sign in with the password of that account, or choose "forgot password" to set a new one. If it was not you, ignore this mail.',
      ],
    }),
  resetPassword: newPasswordMail('Reset your password', {
    why: 'asked to reset the password of your account.',
    otherwise: 'ignore this mail: nothing has changed.',
  }),
  renewPassword: newPasswordMail('Choose a new password', {
    why: 'tried to sign in to your account with a password. The stored password comes from another system, in a form that can no longer be checked, so no password is accepted until you choose a new one.',
    otherwise: 'ignore this mail: nothing has changed.',
  }),
  changePassword: newPasswordMail('Choose a new password', {
    why: 'signed in to your account with its password. It was set before this address was confirmed, perhaps by another person, so it has to be changed first.',
    otherwise: 'use the link all the same: another person knows the old password.',
  }),
  passwordChanged: (user: Recipient, ended: EndedSessions = 'all'): Mail =>
    composeMail({
      to: user.email,
      subject: 'Your password was changed',
      paragraphs: [
        greeting(user),
        `the password of your account has just been changed. ${SESSIONS[ended]}`,
        'If it was not you, reset your password now.',
      ],
    }),
  passkeyAdded: (user: Recipient, name: string | null): Mail =>
    composeMail({
      to: user.email,
      subject: 'A passkey was added to your account',
      paragraphs: [
        greeting(user),
        hasProvenEmail(user) && name !== null
          ? `the passkey "${name}" has just been added to your account. It signs in without a password.`
          : 'a passkey has just been added to your account. It signs in without a password.',
        'If it was not you, change your password, end all sessions and remove the passkey.',
      ],
    }),
  passkeyRemoved: (user: Recipient): Mail =>
    composeMail({
      to: user.email,
      subject: 'A passkey was removed from your account',
      paragraphs: [
        greeting(user),
        'a passkey has just been removed from your account. It no longer signs in.',
        'If it was not you, change your password and end all sessions.',
      ],
    }),
  accountLinked: (user: Recipient, provider: string): Mail =>
    composeMail({
      to: user.email,
      subject: 'A way to sign in was added to your account',
      paragraphs: [
        greeting(user),
        `an account at the provider "${provider}" has just been linked to your account. It signs in without a password.`,
        'If it was not you, change your password, end all sessions and remove the linked account.',
      ],
    }),
  accountUnlinked: (user: Recipient, provider: string): Mail =>
    composeMail({
      to: user.email,
      subject: 'A way to sign in was removed from your account',
      paragraphs: [
        greeting(user),
        `${provider === 'credential' ? 'the password' : `the linked account at the provider "${provider}"`} has just been removed from your account. It no longer signs in.`,
        'If it was not you, reset your password and end all sessions now.',
      ],
    }),
  secondFactorCode: (user: Recipient, { code, lifetime }: { code: string; lifetime: number }): Mail =>
    composeMail({
      to: user.email,
      subject: 'Your code',
      paragraphs: [
        greeting(user),
        `your code is ${code}`,
        `It works once, for ${minutesOf(lifetime)}, in the window that asked for it. Give it to nobody. If you are not signing in, someone knows your password: change it.`,
      ],
    }),
  factorChanged: (user: Recipient, change: FactorChange): Mail =>
    composeMail({
      to: user.email,
      subject: 'The security of your account was changed',
      paragraphs: [
        greeting(user),
        FACTOR_CHANGES[change],
        'If it was not you, reset your password and end all sessions now.',
      ],
    }),
  confirmChangeEmail: (link: MailedLink & { payload: { newEmail: string } }): Mail =>
    composeMail({
      to: link.recipient.email,
      subject: 'Confirm the change of your email address',
      paragraphs: [
        greeting(link.recipient),
        `someone who is signed in to your account asked to change its email address to ${addressFor(link.recipient, link.payload.newEmail)}.`,
        ...codeText(link),
        linkText(link, 'If it was not you, ignore this mail and change your password.'),
      ],
      ...button('Confirm the change', link),
    }),
  changeEmail: (link: MailedLink & { address: string }): Mail =>
    composeMail({
      to: link.address,
      subject: 'Verify your new email address',
      paragraphs: [
        'Hello,',
        'please confirm that this is the new email address of your account.',
        ...codeText(link),
        linkText(link, 'If you did not ask for this, ignore this mail.'),
      ],
      ...button('Verify the new address', link),
    }),
  emailIsChanging: (user: Recipient, newEmail: string): Mail =>
    composeMail({
      to: user.email,
      subject: 'Your email address is about to change',
      paragraphs: [
        greeting(user),
        `the email address of your account is about to change to ${addressFor(user, newEmail)}. A link was sent there.`,
        'If it was not you, change your password now.',
      ],
    }),
  emailChangedByAdmin: (user: Recipient, newEmail: string): Mail =>
    composeMail({
      to: user.email,
      subject: 'Your email address was changed',
      paragraphs: [
        greeting(user),
        `an administrator has changed the email address of your account to ${addressFor(user, newEmail)}.`,
        'If you do not expect this, ask the administrators of this service.',
      ],
    }),
  /** A stranger's address gets no text of a caller: not the organization's name, and the inviter only by a proven address. */
  invitation: ({ recipient, url, lifetime, organization, inviter, role }: MailedInvitation): Mail =>
    composeMail({
      to: recipient.email,
      subject: 'You are invited to an organization',
      paragraphs: [
        greeting(recipient),
        `${hasProvenEmail(inviter) ? inviter.email : 'someone'} invites you to ${hasProvenEmail(recipient) ? organization.name : 'an organization'}, with the role ${role.replaceAll(',', ', ')}.`,
        `The invitation is for ${recipient.email} and lasts ${minutesOf(lifetime)}. If you do not expect it, ignore this mail.`,
      ],
      action: { label: 'See the invitation', url },
    }),
  deleteUser: (link: MailedLink): Mail =>
    composeMail({
      to: link.recipient.email,
      subject: 'Delete your account',
      paragraphs: [
        greeting(link.recipient),
        'someone who is signed in to your account asked to delete it, with everything in it.',
        `The link works once, for ${minutesOf(link.lifetime)}, in the browser where you are signed in. If it was not you, change your password.`,
      ],
      ...button('Delete my account', link),
    }),
}
