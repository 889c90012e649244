import type { Config } from '#kernel/config/config.ts'

/** The settings of one provider. */
export type ProviderSettings = Config['auth']['social']['providers'][string]

/** A provider as data: where it is, what to ask for, and how to read its answers. */
export type Provider = {
  /** As people know it. */
  readonly label: string
  /** Asked for unless the settings name others. */
  readonly scopes: readonly string[]
  /** Asked for in any case: without them the user is not known. */
  readonly required: readonly string[]
  /** Settings that the provider needs, besides the client id. */
  readonly settings?: readonly (keyof ProviderSettings)[]
  /** Addresses that the settings do not name. `{tenant}` is a setting. */
  readonly server: Server
  /** Further parameters of the authorization request. */
  readonly parameters?: Readonly<Record<string, string>>
  /** Those that ask for a new sign-in, also of a person who is signed in at the provider. As far as it documents some. */
  readonly again?: Readonly<Record<string, string>>
  /** The client secret of this moment, if it is not the configured one. */
  clientSecret?(settings: ProviderSettings, now: Date): Promise<string>
  /** The account, by the provider's documented answers. */
  profile(answers: Answers): Promise<Profile> | Profile
}

/** An OpenID Connect issuer, whose endpoints are discovered; or the endpoints of an OAuth 2 server. */
export type Server =
  | { readonly type: 'oidc'; readonly issuer: string }
  | {
      readonly type: 'oauth2'
      /** Compared with `iss` of the authorization response (RFC 9207). */
      readonly issuer: string
      readonly authorizationUrl: string
      readonly tokenUrl: string
      /** Describes the user of an access token. */
      readonly userinfoUrl: string
    }

/** A JSON object of a provider, not checked yet. */
export type Claims = Readonly<Record<string, unknown>>

type Answers = {
  /** Of the ID token or the userinfo endpoint. */
  readonly claims: Claims
  /** Sent with the authorization response, once (Apple). It is not signed. */
  readonly sent?: Claims | undefined
  readonly settings: ProviderSettings
  /** Asks another endpoint with the access token. */
  get(url: string): Promise<unknown>
}

/** An account at a provider. */
export type Profile = {
  /** It never changes. */
  readonly id: unknown
  readonly email: unknown
  /** By a claim that the provider documents as such. */
  readonly emailVerified: boolean
  readonly name: unknown
  readonly image: unknown
}

/** The server of these settings. Without an issuer its name is the origin of its authorization endpoint. */
export function serverOf({ server }: Provider, settings: ProviderSettings): Server {
  const issuer = settings.issuer ?? server.issuer.replace('{tenant}', () => settings.tenant)
  if (server.type === 'oidc') return { type: 'oidc', issuer }
  const authorizationUrl = settings.authorization_url ?? server.authorizationUrl
  return {
    type: 'oauth2',
    issuer: issuer === '' ? new URL(authorizationUrl).origin : issuer,
    authorizationUrl,
    tokenUrl: settings.token_url ?? server.tokenUrl,
    userinfoUrl: settings.userinfo_url ?? server.userinfoUrl,
  }
}

/** Claims of OpenID Connect Core 1.0, section 5.1. */
export const standardProfile = (claims: Claims): Profile => ({
  id: claims.sub,
  email: claims.email,
  emailVerified: claims.email_verified === true,
  name: claims.name ?? claims.preferred_username,
  image: claims.picture,
})

/** Shared by issuers that keep to the standard. */
export const OPENID_CONNECT = {
  scopes: ['openid', 'email', 'profile'],
  required: ['openid', 'email'],
  profile: ({ claims }: Answers): Profile => standardProfile(claims),
} as const

export const asClaims = (value: unknown): Claims =>
  // Every member is checked where it is read.
  typeof value === 'object' && value !== null ? (value as Claims) : {}
