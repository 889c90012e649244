/**
 * How a user has proven who they are. `mail`: by a link or code, so the mailbox has counted as a factor. `verified passkey`: with user
 * verification, which counts as two factors. `second factor`: completes a sign-in of any other way. `one-time token`: by a session of theirs.
 * `device`: a session of the user has approved the device. `anonymous`: nothing; the user was added with the session.
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
  | 'device'
  | 'anonymous'

export const isTwoFactors = (way: Way): boolean => way === 'verified passkey' || way === 'second factor'
