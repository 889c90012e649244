/**
 * A proof that a session can show (auth.md 2), as its columns `shown` and `user_had` and the function `service.methods_of` spell it.
 * `passkey` is with user verification, `unverified passkey` without. `mailed code`: a code by mail where another factor is in force, `otp`
 * where it is the factor. `mail`: a link or code was opened in the mailbox, or a provider has proven its address. `second mail`: a code by
 * mail where it is the factor, and the mailbox has counted before. `trusted device`: the browser's cookie stood in for the factor.
 * `new …`: it was added while the session lived. `unsettled way`: the last proof was a passkey or an account that a session has added
 * without a proof, not long ago. `factor of the admin`: of an impersonated session, whose admin's own session had shown a factor when this one
 * began.
 */
export type Shown =
  | Addable
  | `new ${Addable}`
  | Factor
  | 'mailed code'
  | 'mail'
  | 'second mail'
  | 'trusted device'
  | typeof UNSETTLED
  | typeof FACTOR_OF_ADMIN

/** The only word of an impersonated session: what it begins with is its history, whatever the admin shows later. */
export const FACTOR_OF_ADMIN = 'factor of the admin'
const UNSETTLED = 'unsettled way'

/** Ways of signing in that a session can add. */
type Addable = 'password' | 'passkey' | 'unverified passkey' | `provider:${string}`

/** A way of signing in, when it was added to the account, and until when it is no proof of its own; null: it is one. */
export type ShownWay = { readonly way: Addable; readonly addedAt: Date; readonly settlesAt: Date | null }

/** The words for it in a session that began at this time. */
export function wordsOf(
  { way, addedAt, settlesAt }: ShownWay,
  { begun, now }: { readonly begun: Date; readonly now: Date },
): readonly Shown[] {
  if (addedAt > begun) return [`new ${way}`]
  return settlesAt !== null && settlesAt > now ? [way, UNSETTLED] : [way]
}

/** The last proof of the session may be of who has stolen another one. */
export const isUnsettled = (shown: readonly string[]): boolean => shown.includes(UNSETTLED)

type Factor = (typeof FACTORS)[number]

/** A second factor. A passkey with user verification is one, and counts for the password as well where a sign-in asks for both. */
const FACTORS = ['totp', 'otp', 'backup code', 'passkey'] as const
export const isFactor = (shown: string): boolean => FACTORS.some((factor) => factor === shown)

const BESIDES: readonly string[] = ['mailed code', 'new passkey', 'trusted device']

/** The user has what these words say, or the session has shown it. `service.has_shown_factor` says the same. */
export const hasShownFactor = (shown: readonly string[]): boolean =>
  shown.some((each) => isFactor(each) || BESIDES.includes(each))

/** The session has passed the factor in force, though perhaps by the mailbox alone: no role that requires a factor is content with that. */
export const hasPassedFactor = (shown: readonly string[]): boolean =>
  hasShownFactor(shown) || shown.includes('second mail')

const IN_FORCE: readonly string[] = ['totp', 'otp']

/** Is a second factor in force for who has these methods? A passkey is asked for by no sign-in. */
export const isFactorInForce = (methods: readonly string[]): boolean =>
  methods.some((each) => IN_FORCE.includes(each))

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

/** `userHad`: the methods of the user when the session began. Absent: it begins now. */
type Before = ProofColumns & { readonly userHad?: readonly string[] }

/**
 * The columns after the session shows these as well. A trusted device is remembered, and is no proof. Neither is a method that the user did
 * not have when the session began: who has stolen it may have added that.
 */
export function afterShowing(
  { userHad = [], ...before }: Before,
  shown: readonly Shown[],
  now: Date,
): ProofColumns {
  const counted = shown.filter((each) => isProof(each, userHad))
  const isShownFactor = (each: Shown): boolean =>
    (isFactor(each) || each === 'second mail') && (counted.includes(each) || !isFactorInForce(userHad))
  const isPasswordShown =
    shown.includes('password') || (shown.includes('new password') && !userHad.includes('password'))
  const all = [...new Set([...before.shown, ...shown])]
  return {
    shown: settles(shown, counted) ? all.filter((each) => each !== UNSETTLED) : all,
    authTime: counted.length > 0 ? now : before.authTime,
    passwordShownAt: isPasswordShown ? now : before.passwordShownAt,
    factorShownAt: shown.some(isShownFactor) ? now : before.factorShownAt,
  }
}

/** A code of the second factor, or a way that is settled itself. A password counts by its own time. */
const settles = (shown: readonly Shown[], counted: readonly Shown[]): boolean =>
  counted.some((each) => METHODS[each] === IN_FORCE) ||
  (!isUnsettled(shown) && counted.some((each) => each !== 'password'))

/** Does it prove the user of a session, for who had these methods when it began? Who had none has the mailbox. */
export function isProof(shown: string, userHad: readonly string[]): boolean {
  if (shown === 'trusted device' || shown === UNSETTLED) return false
  const methods = METHODS[shown] ?? [shown]
  return userHad.length === 0 || userHad.some((method) => methods.includes(method))
}

/** The methods that a word of `shown` proves, where it is not the method's own. */
const METHODS: Readonly<Record<string, readonly string[]>> = {
  totp: IN_FORCE,
  otp: IN_FORCE,
  'mailed code': IN_FORCE,
  'second mail': IN_FORCE,
  'backup code': IN_FORCE,
  'unverified passkey': ['passkey'],
}

/** When the session has shown a proof for the last time, for a user with these methods. The mailbox is one for who has nothing else. */
export const lastProof = (
  { shown, authTime, userHad }: ProofColumns & { readonly userHad: readonly string[] },
  has: readonly string[],
): Date | null => {
  if (userHad.length === 0 && has.length === 0) return authTime
  return shown.some((each) => each !== 'mail' && isProof(each, userHad)) ? authTime : null
}
