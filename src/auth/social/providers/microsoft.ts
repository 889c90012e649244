import { type Provider, standardProfile } from './provider.ts'

/** https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference */
export const microsoft: Provider = {
  label: 'Microsoft',
  scopes: ['openid', 'email', 'profile', 'offline_access'],
  required: ['openid', 'email'],
  server: { type: 'oidc', issuer: 'https://login.microsoftonline.com/{tenant}/v2.0' },
  again: { prompt: 'login' },
  /**
   * Tenants set the address of their users, so that `email` alone proves nothing. The optional claim `xms_edov` is true if the tenant
   * owns the domain of the address.
   */
  profile: ({ claims }) => ({
    ...standardProfile(claims),
    emailVerified: [true, 'true', 1, '1'].some((yes) => yes === claims.xms_edov),
  }),
}
