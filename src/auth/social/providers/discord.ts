import type { Provider } from './provider.ts'

/** https://docs.discord.com/developers/topics/oauth2 and /resources/user */
export const discord: Provider = {
  label: 'Discord',
  scopes: ['identify', 'email'],
  required: ['identify', 'email'],
  server: {
    type: 'oauth2',
    issuer: 'https://discord.com',
    authorizationUrl: 'https://discord.com/oauth2/authorize',
    tokenUrl: 'https://discord.com/api/oauth2/token',
    userinfoUrl: 'https://discord.com/api/users/@me',
  },
  // It cannot be told to ask for the password; the person consents again.
  again: { prompt: 'consent' },
  profile: ({ claims: user }) => ({
    id: user.id,
    email: user.email,
    emailVerified: user.verified === true,
    name: user.global_name ?? user.username,
    image:
      typeof user.avatar === 'string'
        ? `https://cdn.discordapp.com/avatars/${user.id}/${user.avatar}.png`
        : null,
  }),
}
