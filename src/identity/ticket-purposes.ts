import type { FieldChange } from './custom-fields.ts'
import type { WrittenInheritance } from './inherited-sessions.ts'
import type { Shown } from './shown.ts'

/**
 * The purposes of one-time tokens, an entry each: `user` if the token belongs to a user, `address` if it belongs to the user who has the
 * address when it is redeemed, with or without an account until then, `nobody` if the sign-in that it belongs to has no user yet; and
 * the payload. A token is valid for its own purpose only.
 */
type Purposes = {
  'verify-email': Of<'user', SignUpMark>
  'reset-password': Of<'user', Nothing>
  'confirm-change-email': Of<'user', { readonly newEmail: string; readonly callbackURL?: string }>
  'change-email': Of<'user', Partial<WaitingPassword>>
  'delete-user': Of<'user', Nothing>
  'sign-in': Of<'address', SignInRequest>
  'passkey-registration': Of<'user', PasskeyChallenge>
  'passkey-sign-in': Of<'nobody', PasskeyChallenge>
  'social-sign-in': Of<'nobody', SocialState>
  'social-link': Of<'user', SocialState & Partial<OfSession>>
  'social-reauthentication': Of<'user', SocialState & Partial<OfSession>>
  /** A sign-in that waits for its second factor, by one of these methods or a backup code. */
  'second-factor': Of<'user', PendingSignIn>
  /** In place of a token it has a code, valid for one session or pending sign-in (mailed-codes.ts). */
  'second-factor-code': Of<'user', { readonly subject: string }>
  /** A solved captcha, which is used with this row (auth/captcha/). */
  captcha: Of<'nobody', Nothing>
  /** Begins a session that is derived from the one that asked. */
  'one-time-token': Of<'user', OfSession>
  /** Begins a session of the user in the payload, for the admin whose ticket it is. */
  'impersonation-handoff': Of<'user', OfSession & { readonly userId: string }>
  /** Makes its bearer the first admin (first-admin.ts). */
  'first-admin': Of<'nobody', Nothing>
  /** An approved device, by its device code (auth/device/). */
  'device-session': Of<'user', WrittenInheritance>
}
/** The columns of a ticket that depend on its subject. */
type Subjects = {
  readonly user: { readonly userId: string; readonly sessionId: string | null; readonly address: string }
  readonly address: { readonly userId: null; readonly sessionId: string | null; readonly address: string }
  readonly nobody: { readonly userId: null; readonly sessionId: null; readonly address: null }
}
type Of<Subject extends keyof Subjects, Payload> = {
  readonly subject: Subject
  readonly payload: Payload
}
type Nothing = Record<string, never>
/** Where a sign-up happened, or where the password was shown before the proof. */
export type SignUpMark = {
  /** Hash of a cookie that only that browser has (cookies.ts). */
  readonly browser?: string
  /** The session that the sign-up has begun there. */
  readonly session?: string
}
/** For an address that has no account yet. */
type SignInRequest = {
  readonly name?: string | undefined
  readonly fields?: FieldChange | undefined
  readonly newUserCallbackURL?: string | undefined
  /** The anonymous user in whose session it was asked for, who gets the address when it is redeemed in a session of that user. */
  readonly anonymousId?: string | undefined
}
/** Of an anonymous user who has signed up with the address. `browser`: as in `SignUpMark`. */
export type WaitingPassword = {
  /** The hash. */
  readonly password: string
  readonly browser: string
}
type PendingSignIn = {
  readonly methods: readonly ('totp' | 'otp')[]
  readonly remember: boolean
  /** Shown by the first step. Absent in a sign-in that began before this was kept. */
  readonly shown?: readonly Shown[]
}
/**
 * Hash of the session's token, in base64url: whoever has an old token of the session gets nothing of what it has shown since. Absent in a
 * visit to a provider that began before this was kept.
 */
type OfSession = { readonly token: string }
/** In base64url. It is public: the browser shows it to the authenticator. */
type PasskeyChallenge = { readonly challenge: string }

/** The state of an authorization request at a social provider, to be compared when the browser returns. */
export type SocialState = {
  readonly provider: string
  /** Hash of a cookie that only the browser has in which it began. */
  readonly browser: string
  /** PKCE code verifier (RFC 7636), sealed. */
  readonly codeVerifier: string
  /** Of OpenID Connect. */
  readonly nonce?: string
  readonly scopes: readonly string[]
  readonly callbackURL?: string | undefined
  readonly errorCallbackURL?: string | undefined
  readonly newUserCallbackURL?: string | undefined
  readonly requestSignUp?: boolean | undefined
  /** It began in the console, whose session the browser gets. */
  readonly isOfConsole?: boolean | undefined
  /** The time since when the person has to have signed in at the provider, as ISO 8601. */
  readonly since?: string
}

export type TicketPurpose = keyof Purposes
export type TicketPayload<P extends TicketPurpose> = Purposes[P]['payload']

type PurposeOf<Subject extends keyof Subjects> = {
  [P in TicketPurpose]: Purposes[P]['subject'] extends Subject ? P : never
}[TicketPurpose]
/** Purposes of tickets that belong to a user. */
export type UserPurpose = PurposeOf<'user'>
/** Purposes of tickets that belong to an address, which may have no account. */
export type AddressPurpose = PurposeOf<'address'>
/** Purposes of tickets that belong to neither. */
export type AnonymousPurpose = PurposeOf<'nobody'>
/** Purposes of tickets that can be mailed. */
export type MailedPurpose = UserPurpose | AddressPurpose
export type SubjectOf<P extends TicketPurpose> = Subjects[Purposes[P]['subject']]
