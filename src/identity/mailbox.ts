/** Facts that decide whether the mailbox counts as a factor, which it does once (auth.md 7): of a session, or of a pending sign-in. */
export type Mailbox = {
  readonly shown: readonly string[]
  /** The user's methods when the session began. */
  readonly userHad: readonly string[]
  readonly has: readonly string[]
  /** The user's password was chosen by a mailed link, and not shown with another factor since. */
  readonly passwordFromMail: boolean
}

/** It has let in this session, or it has chosen the password that lets in all. */
export const hasMailCounted = ({
  shown,
  passwordFromMail,
}: Pick<Mailbox, 'shown' | 'passwordFromMail'>): boolean => passwordFromMail || shown.includes('mail')

/** Users who have nothing but codes by mail use them to get in all the same. */
export const takesMailedCodes = (mailbox: Mailbox): boolean =>
  !hasMailCounted(mailbox) ||
  ![...mailbox.userHad, ...mailbox.has].some((method) => method === 'totp' || method === 'passkey')

/** Of the words of `shown`; `service.settle_password` has the same. */
const OTHER_FACTORS: readonly string[] = ['totp', 'backup code', 'passkey']

/** The session has shown the mailbox and no other factor: a password that is set in it comes from the mailbox. */
export const isByMailAlone = (shown: readonly string[]): boolean =>
  shown.includes('mail') && !shown.some((each) => OTHER_FACTORS.includes(each))
