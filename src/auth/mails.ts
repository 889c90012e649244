import type { User } from '#identity/users.ts'
import type { Mail } from '#kernel/mail/mailer.ts'
import { composeMail } from '#kernel/mail/messages.ts'

/** Every mail that this half sends: one entry each. */
type To = Pick<User, 'name' | 'email'>

const minutesOf = (life: number): string =>
  life < 7_200_000 ? `${Math.round(life / 60_000)} minutes` : `${Math.round(life / 3_600_000)} hours`

export const mails = {
  verifyEmail: ({ name, email }: To, url: string, life: number): Mail =>
    composeMail({
      to: email,
      subject: 'Verify your email address',
      paragraphs: [
        `Hello ${name},`,
        'please confirm that this address is yours.',
        `The link works once, for ${minutesOf(life)}. If you did not sign up, ignore this mail.`,
      ],
      action: { label: 'Verify email', url },
    }),
  resetPassword: ({ name, email }: To, url: string, life: number): Mail =>
    composeMail({
      to: email,
      subject: 'Reset your password',
      paragraphs: [
        `Hello ${name},`,
        'somebody, hopefully you, asked to reset the password of your account.',
        `The link works once, for ${minutesOf(life)}. If it was not you, ignore this mail: nothing has changed.`,
      ],
      action: { label: 'Choose a new password', url },
    }),
  passwordChanged: ({ name, email }: To): Mail =>
    composeMail({
      to: email,
      subject: 'Your password was changed',
      paragraphs: [
        `Hello ${name},`,
        'the password of your account has just been changed, and every other session was ended.',
        'If it was not you, reset your password now.',
      ],
    }),
  confirmChangeEmail: ({ name, email }: To, newEmail: string, url: string, life: number): Mail =>
    composeMail({
      to: email,
      subject: 'Confirm the change of your email address',
      paragraphs: [
        `Hello ${name},`,
        `somebody who is signed in to your account asked to change its email address to ${newEmail}.`,
        `The link works once, for ${minutesOf(life)}. If it was not you, ignore this mail and change your password.`,
      ],
      action: { label: 'Confirm the change', url },
    }),
  changeEmail: (name: string, newEmail: string, url: string, life: number): Mail =>
    composeMail({
      to: newEmail,
      subject: 'Verify your new email address',
      paragraphs: [
        `Hello ${name},`,
        'please confirm that this is the new email address of your account.',
        `The link works once, for ${minutesOf(life)}. If you do not know of it, ignore this mail.`,
      ],
      action: { label: 'Verify the new address', url },
    }),
  emailIsChanging: ({ name, email }: To, newEmail: string): Mail =>
    composeMail({
      to: email,
      subject: 'Your email address is about to change',
      paragraphs: [
        `Hello ${name},`,
        `the email address of your account is about to change to ${newEmail}. A link was sent there.`,
        'If it was not you, change your password now.',
      ],
    }),
  deleteUser: ({ name, email }: To, url: string, life: number): Mail =>
    composeMail({
      to: email,
      subject: 'Delete your account',
      paragraphs: [
        `Hello ${name},`,
        'somebody who is signed in to your account asked to delete it, with everything in it.',
        `The link works once, for ${minutesOf(life)}, in the browser where you are signed in. If it was not you, change your password.`,
      ],
      action: { label: 'Delete my account', url },
    }),
}
