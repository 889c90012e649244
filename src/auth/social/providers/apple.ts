import { importPKCS8, SignJWT } from 'jose'
import { asClaims, type Provider, standardProfile } from './provider.ts'

const AUDIENCE = 'https://appleid.apple.com'

/** https://developer.apple.com/documentation/signinwithapplerestapi */
export const apple: Provider = {
  label: 'Apple',
  scopes: ['openid', 'email', 'name'],
  required: ['openid', 'email'],
  settings: ['team_id', 'key_id', 'private_key'],
  server: { type: 'oidc', issuer: AUDIENCE },
  // Asked for a name or an address, Apple sends its answer by POST only.
  parameters: { response_mode: 'form_post' },
  async clientSecret({ team_id = '', key_id = '', private_key = '', client_id = '' }, now) {
    const seconds = Math.floor(now.getTime() / 1_000)
    return new SignJWT()
      .setProtectedHeader({ alg: 'ES256', kid: key_id })
      .setIssuer(team_id)
      .setSubject(client_id)
      .setAudience(AUDIENCE)
      .setIssuedAt(seconds)
      .setExpirationTime(seconds + 600)
      .sign(await importPKCS8(private_key, 'ES256'))
  },
  profile: ({ claims, sent }) => ({
    ...standardProfile(claims),
    // Documented as a Boolean or a String.
    emailVerified: claims.email_verified === true || claims.email_verified === 'true',
    name: fullName(asClaims(asClaims(sent).name)),
  }),
}

const fullName = ({ firstName, lastName }: Readonly<Record<string, unknown>>): string =>
  [firstName, lastName].filter((part) => typeof part === 'string').join(' ')
