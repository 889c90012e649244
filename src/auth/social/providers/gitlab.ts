import { OPENID_CONNECT, type Provider } from './provider.ts'

/** https://docs.gitlab.com/integration/openid_connect_provider/, on GitLab.com or a server of one's own (setting `issuer`). */
export const gitlab: Provider = {
  label: 'GitLab',
  ...OPENID_CONNECT,
  server: { type: 'oidc', issuer: 'https://gitlab.com' },
  again: { prompt: 'login' },
}
