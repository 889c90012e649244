import { Type } from 'typebox'
import { webUrlForm } from '../addresses.ts'
import { type Form, textForm } from '../forms.ts'
import { choice, flag, list, named, section, text } from '../setting.ts'

/** It is part of the redirect URI. `credential` names the password among the accounts of a user. */
const providerNameForm = textForm(
  'provider name',
  /^(?!credential$)[a-z][a-z0-9_-]{0,62}$/,
  'a small letter, then up to 62 small letters, digits, _ or -, and not credential',
)

const clientIdForm = textForm('client id', /^[!-+\--~]{1,255}$/, 'one client id, without spaces and commas')
const scopeForm = textForm('scope', /^[!#-+\--[\]-~]{1,256}$/, 'one scope, without spaces and commas')

/** From a file, or from a variable in which line breaks are spelled \n. */
const privateKeyForm: Form<string> = {
  name: 'private key',
  allowed: 'a private key in PEM form (PKCS 8), as in the .p8 file',
  parse: (given) => {
    const pem = given.replaceAll('\\n', '\n').trim()
    return /^-----BEGIN PRIVATE KEY-----\s[A-Za-z0-9+/=\s]{1,4096}-----END PRIVATE KEY-----$/.test(pem)
      ? pem
      : undefined
  },
  write: (value) => value,
}

const endpoint = (description: string) =>
  Type.Optional(
    text(description, { absent: 'required for oauth2, else the provider’s', secret: 'password' }, webUrlForm),
  )
const member = (description: string, otherwise: string) =>
  text(`Member with ${description}; a dot enters an object.`, { default: otherwise })

const claims = section('Members of the user’s description (type oauth2).', {
  id: member('the id of the account, which must never change', 'id'),
  email: member('the address', 'email'),
  email_verified: Type.Optional(
    text('Member that is true if the provider has verified the address.', { absent: 'never verified' }),
  ),
  name: member('the name', 'name'),
  image: Type.Optional(text('Member with the URL of the picture.', { absent: 'no picture' })),
})

const provider = section('An identity provider.', {
  type: choice(
    'Kind of provider: a built-in one of this name, an OpenID Connect issuer, or an OAuth 2 server.',
    ['built_in', 'oidc', 'oauth2'],
    { default: 'built_in' },
  ),
  client_id: Type.Optional(text('Client id that the provider has given out.', { absent: 'required' })),
  client_secret: Type.Optional(text('Its secret.', { secret: 'all', absent: 'a public client' })),
  client_authentication: Type.Optional(
    choice('How the secret is sent.', ['client_secret_post', 'client_secret_basic'], {
      absent: 'client_secret_post, unless the issuer supports only client_secret_basic',
    }),
  ),
  scopes: list('Scopes to ask for in place of the default ones.', scopeForm),
  audiences: list('Further client ids whose ID tokens are accepted, of native apps.', clientIdForm),
  issuer: Type.Optional(
    text(
      'Issuer, exactly as it names itself.',
      { absent: 'required for oidc; the built-in one' },
      webAddressForm(),
    ),
  ),
  authorization_url: endpoint('Authorization endpoint.'),
  token_url: endpoint('Token endpoint.'),
  userinfo_url: endpoint('Endpoint that describes the user of an access token.'),
  claims,
  tenant: text('Tenant: its id or domain, or common, organizations, consumers (microsoft).', {
    default: 'common',
  }),
  team_id: Type.Optional(text('Team id (apple).', { absent: 'required for apple' })),
  key_id: Type.Optional(text('Id of the key (apple).', { absent: 'required for apple' })),
  private_key: Type.Optional(
    text(
      'The key that signs client secrets (apple).',
      { secret: 'all', absent: 'required for apple' },
      privateKeyForm,
    ),
  ),
})

const linking = section('Accounts of providers that are added to a user with the same email address.', {
  enabled: flag(
    'Whether a sign-in links an account to the user who has its address, if both sides have verified it.',
    { default: true },
  ),
  trusted_providers: list(
    'Providers whose addresses count as verified, even if the provider does not say so. Their users can enter every account with a verified address.',
    providerNameForm,
  ),
  allow_different_emails: flag('Whether users may link accounts with another address than theirs.', {
    default: false,
  }),
})

/** auth.md 6. */
export const social = section('Sign-in with accounts of other services.', {
  providers: named(
    'Identity providers by name. Register {auth_url}/callback/NAME as the redirect URI at the provider.',
    providerNameForm,
    provider,
  ),
  sign_up: choice(
    'Whether a sign-in with an unknown account adds a user: always, if the request says requestSignUp, or never.',
    ['always', 'requested', 'never'],
    {
      derived: {
        says: 'always, or never without auth.email_password.enable_signup',
        from: ({ value }) => (value('auth.email_password.enable_signup') === true ? 'always' : 'never'),
      },
    },
  ),
  linking,
})

/** The issuer is compared as it is spelled, so the text stays. */
function webAddressForm(): Form<string> {
  return { ...webUrlForm, parse: (given) => (webUrlForm.parse(given) ? given.trim() : undefined) }
}
