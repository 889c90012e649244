import { OPENID_CONNECT, type Provider } from './provider.ts'

/** https://developers.google.com/identity/openid-connect/openid-connect */
export const google: Provider = {
  label: 'Google',
  ...OPENID_CONNECT,
  server: { type: 'oidc', issuer: 'https://accounts.google.com' },
  // Without `offline` there is no refresh token. Google sends one at the first consent only.
  parameters: { access_type: 'offline', include_granted_scopes: 'true' },
  // It knows no `login` and refuses it. The person chooses the account, and enters the password only when Google asks for it.
  again: { prompt: 'select_account' },
}
