import { asClaims, type Claims, OPENID_CONNECT, type Provider } from './provider.ts'

/** Any OpenID Connect issuer. Its settings name it. */
export const oidc: Provider = {
  label: 'OpenID Connect',
  ...OPENID_CONNECT,
  settings: ['issuer'],
  server: { type: 'oidc', issuer: '' },
  // With `max_age` the ID token tells the time of the sign-in (OpenID Connect Core 1.0, section 3.1.2.1).
  again: { prompt: 'login', max_age: '0' },
}

/** Any OAuth 2 server. Its settings name endpoints, scopes and the members of its answer. */
export const oauth2: Provider = {
  label: 'OAuth 2',
  scopes: [],
  required: [],
  settings: ['authorization_url', 'token_url', 'userinfo_url'],
  // A server that does not know it ignores it (RFC 6749, section 3.1).
  again: { prompt: 'login' },
  server: { type: 'oauth2', issuer: '', authorizationUrl: '', tokenUrl: '', userinfoUrl: '' },
  profile: ({ claims, settings: { claims: names } }) => ({
    id: at(claims, names.id),
    email: at(claims, names.email),
    emailVerified: names.email_verified !== undefined && at(claims, names.email_verified) === true,
    name: at(claims, names.name),
    image: names.image === undefined ? null : at(claims, names.image),
  }),
}

/** `data.user.id` enters objects. */
const at = (claims: Claims, path: string): unknown =>
  path.split('.').reduce<unknown>((inner, name) => {
    const object = asClaims(inner)
    return Object.hasOwn(object, name) ? object[name] : undefined
  }, claims)
