import { type Provider, standardProfile } from './provider.ts'

/** https://docs.gitlab.com/integration/openid_connect_provider/, on GitLab.com or a server of one's own (setting `issuer`). */
export const gitlab: Provider = {
  label: 'GitLab',
  scopes: ['openid', 'email', 'profile'],
  required: ['openid', 'email'],
  server: ({ issuer = 'https://gitlab.com' }) => ({ type: 'oidc', issuer }),
  again: { prompt: 'login' },
  profile: ({ claims }) => standardProfile(claims),
}
