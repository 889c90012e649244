/**
 * A proof that a session can show (auth.md 2), as its columns `shown` and `user_had` and the function `service.methods_of` spell it.
 * `passkey` is with user verification, `unverified passkey` without. `mail`: a link or code was opened in the mailbox. `trusted device`:
 * the browser's cookie stood in for the factor.
 */
export type Shown =
  | 'password'
  | Factor
  | 'unverified passkey'
  | 'trusted device'
  | 'mail'
  | `provider:${string}`

type Factor = (typeof FACTORS)[number]

const FACTORS = ['totp', 'otp', 'backup code', 'passkey'] as const

/** The user has what these words say, or the session has shown it. `service.has_shown_factor` says the same. */
export const hasShownFactor = (shown: readonly string[]): boolean =>
  shown.some((each) => isFactor(each) || each === 'trusted device')

/** A second factor. A passkey with user verification is one, and counts for the password as well where a sign-in asks for both. */
export const isFactor = (shown: string): boolean => FACTORS.some((factor) => factor === shown)

/** The columns that a session keeps about what it shows. */
export type ProofColumns = {
  readonly shown: readonly string[]
  readonly authTime: Date | null
  readonly passwordShownAt: Date | null
  readonly factorShownAt: Date | null
}

/** The columns of a session that has shown nothing. */
export const NOTHING_SHOWN: ProofColumns = {
  shown: [],
  authTime: null,
  passwordShownAt: null,
  factorShownAt: null,
}

/** The columns after the session shows these as well. A trusted device is remembered, and is no proof. */
export function afterShowing(before: ProofColumns, shown: readonly Shown[], now: Date): ProofColumns {
  const isProof = shown.some((each) => each !== 'trusted device')
  return {
    shown: [...new Set([...before.shown, ...shown])],
    authTime: isProof ? now : before.authTime,
    passwordShownAt: shown.includes('password') ? now : before.passwordShownAt,
    factorShownAt: shown.some(isFactor) ? now : before.factorShownAt,
  }
}
