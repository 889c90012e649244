import { asClaims, type Provider } from './provider.ts'

/** https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps, also on a server of one's own. */
export const github: Provider = {
  label: 'GitHub',
  scopes: ['read:user', 'user:email'],
  required: ['user:email'],
  server: {
    type: 'oauth2',
    issuer: 'https://github.com/login/oauth',
    authorizationUrl: 'https://github.com/login/oauth/authorize',
    tokenUrl: 'https://github.com/login/oauth/access_token',
    userinfoUrl: 'https://api.github.com/user',
  },
  // It cannot be told to ask for the password; the person chooses the account.
  again: { prompt: 'select_account' },
  // The address of the first answer is the public one, verified or not. Only the list of all addresses says which one is verified.
  async profile({ claims, settings, get }) {
    const listed = await get(`${settings.userinfo_url ?? 'https://api.github.com/user'}/emails`)
    const primary = (Array.isArray(listed) ? listed : [])
      .map(asClaims)
      .find((email) => email.primary === true)
    return {
      id: claims.id,
      email: primary?.email,
      emailVerified: primary?.verified === true,
      name: claims.name ?? claims.login,
      image: claims.avatar_url,
    }
  },
}
