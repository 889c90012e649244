import { actOnTicket, actWithoutProof } from '#identity/act.ts'
import { clearGuesses, hashPassword } from '#identity/passwords.ts'
import { deleteUserSessions } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { findTicket } from '#identity/tickets.ts'
import { findUser, hasProvenEmail, isBanned, type User, updateUser } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { removeWhatOthersAdded } from '../email/first-proof.ts'
import { fail, PASSWORD_POLICY_FAILURES } from '../errors.ts'
import type { MailFlow } from '../mailing/flow.ts'
import { issueDecoy, withCode } from '../mailing/link-code.ts'
import { mailLink } from '../mailing/links.ts'
import type { MailRequest } from '../mailing/request.ts'
import { MAILS } from '../mailing/texts.ts'
import { storePassword } from './password.ts'
import { acceptablePassword } from './password-policy.ts'

/** Sets a new password. */
export const RESET_PASSWORD: MailFlow<'reset-password'> = {
  purpose: 'reset-password',
  lifetime: () => HOUR,
  parts: withCode,
  mail: MAILS.resetPassword,
  // It consumes nothing: it redirects to the callback, or a browser to the page.
  endpoint: '/reset-password/:token',
  page: {
    name: 'reset-password',
    setting: 'reset',
    entrance: '/reset-password/:token',
    summary: 'Choose a new password',
    failures: ['INVALID_TOKEN', 'TOKEN_EXPIRED', 'INVALID_RESET_TOKEN', ...PASSWORD_POLICY_FAILURES],
    fields: ['newPassword'],
    askAgain: 'askAgainReset',
  },
  view: async () => ({
    title: 'resetTitle',
    paragraphs: ['resetText'],
    forms: [{ fields: ['newPassword'], button: 'resetButton' }],
  }),
  async act(kernel, _link, { token, values: { newPassword = '' } }) {
    await resetPassword(kernel, token, newPassword)
    return { title: 'resetDone', text: 'resetDoneText' }
  },
}

const HOUR = 3_600_000

/** Runs in the queue, so that the time of an answer does not show whether an address has an account. */
export async function mailReset(
  kernel: Kernel,
  { email: address, callbackURL, source, asked }: MailRequest['reset-password'],
  mail = RESET_PASSWORD.mail,
): Promise<void> {
  const found = await findUser(kernel.db, 'email', address)
  const isMailed =
    found !== undefined &&
    (await actWithoutProof(kernel, found.id, async (kernel, user) => {
      if (user.email !== address || isBanned(user, kernel.now())) return false
      const ticket = { userId: user.id, sessionId: null, address, payload: {} }
      await mailLink(kernel, RESET_PASSWORD, { ticket, recipient: user, callbackURL, source, asked, mail })
      return true
    }))
  if (isMailed !== true) await issueDecoy(kernel, RESET_PASSWORD, { address, ...asked })
}

/**
 * Sets the password by a link's token, and ends every session and every other link. The link also proves the address; at the first
 * proof, accounts, passkeys and a second factor that were added before are removed.
 */
export async function resetPassword(kernel: Kernel, token: string, newPassword: string): Promise<void> {
  // An unknown token is refused before a password is hashed, or looked up at a service elsewhere.
  if (!(await isResetTokenGood(kernel, token))) throw invalidToken()
  const password = await hashPassword(kernel, await acceptablePassword(kernel, newPassword))
  const link = { purposes: RESET, token }
  const { email } = await actOnTicket(kernel, link, invalidToken, async (kernel, user, { expired }) => {
    if (expired) throw invalidToken()
    return storeReset(kernel, user, password)
  })
  await clearGuesses(kernel, email)
}

/** Sets the password of a user who has shown the mailbox, and ends every session and every link. */
export async function storeReset(kernel: Kernel, user: User, password: string): Promise<User> {
  const isFirstProof = !hasProvenEmail(user)
  const ended = isFirstProof
    ? await removeWhatOthersAdded(kernel, user)
    : await deleteUserSessions(kernel.db, user.id)
  const now = kernel.now()
  const proof = { emailVerified: true, emailProvenAt: user.emailProvenAt ?? now }
  const proven = (await updateUser(kernel.db, user.id, proof, now)) ?? user
  await storePassword(kernel, proven, { password, ended: 'all', origin: 'mail' })
  await tell(kernel, 'password.reset', { targetId: user.id, details: { sessionsEnded: ended } })
  return proven
}

export const isResetTokenGood = async (kernel: Kernel, token: string): Promise<boolean> =>
  (await findTicket(kernel, RESET, token))?.expired === false

const RESET = ['reset-password'] as const
const invalidToken = () => fail('INVALID_RESET_TOKEN')
