/**
 * How a user has proven who they are. `mail`: by a link or code, so the mailbox has counted as a factor. `verified passkey`: with user
 * verification, which counts as two factors. `second factor`: completes a sign-in of any other way. `one-time token`: by a session of theirs.
 */
export type Way =
  | 'sign-up'
  | 'password'
  | 'mail'
  | 'social'
  | 'passkey'
  | 'verified passkey'
  | 'second factor'
  | 'one-time token'

export const isTwoFactors = (way: Way): boolean => way === 'verified passkey' || way === 'second factor'
