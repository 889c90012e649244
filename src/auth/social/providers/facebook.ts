import { asClaims, type Provider } from './provider.ts'

/**
 * https://developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow. Addresses without a version use the version of the app.
 * The answer does not say whether the address is verified, so it never counts as such.
 */
export const facebook: Provider = {
  label: 'Facebook',
  scopes: ['public_profile', 'email'],
  required: ['public_profile', 'email'],
  server: {
    type: 'oauth2',
    issuer: 'https://www.facebook.com',
    authorizationUrl: 'https://www.facebook.com/dialog/oauth',
    tokenUrl: 'https://graph.facebook.com/oauth/access_token',
    userinfoUrl: 'https://graph.facebook.com/me?fields=id,name,email,picture.type(large)',
  },
  again: { auth_type: 'reauthenticate' },
  profile: ({ claims }) => ({
    id: claims.id,
    email: claims.email,
    emailVerified: false,
    name: claims.name,
    image: asClaims(asClaims(claims.picture).data).url,
  }),
}
