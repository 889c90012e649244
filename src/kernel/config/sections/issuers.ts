import { Type } from 'typebox'
import { webUrlForm } from '../addresses.ts'
import { type Form, textForm } from '../forms.ts'
import { duration, list, listOf, named, section, text } from '../setting.ts'

/** The issuer is compared as it is spelled, so the text stays. */
const issuerForm: Form<string> = {
  name: 'web address',
  allowed: 'the https address of an issuer, without user, query and fragment, like https://id.example.com',
  parse: (given) => {
    const address = given.trim()
    return /[?#\s]/.test(address) || webUrlForm.parse(address) === undefined ? undefined : address
  },
  write: (value) => value,
}

/** Signatures by public keys. Neither `none` nor an HMAC, whose key more than the issuer knows. */
const ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519',
] // biome-ignore format: one line reads better

const algorithmForm: Form<string> = {
  name: 'algorithm',
  allowed: `one of ${ALGORITHMS.join(', ')}`,
  parse: (given) => ALGORITHMS.find((algorithm) => algorithm === given.trim()),
  write: (value) => value,
}

/** Claims whose value the service decides. */
const OWN_CLAIMS = ['role', 'session_id', 'two_factor', 'impersonated_by', 'sub'] as const

const mappedClaimForm = textForm(
  'claim of request.claims',
  new RegExp(`^(?!(?:${OWN_CLAIMS.join('|')})$)[a-z_][a-z0-9_]{0,62}$`),
  `a small letter, then up to 62 small letters, digits or _, and none of ${OWN_CLAIMS.join(', ')}`,
)
const claimForm = textForm('claim')
const prefixForm = textForm(
  'prefix',
  /^[A-Za-z0-9_.:|@/-]{1,32}$/,
  '1 to 32 letters, digits or _ . : | @ / -, like auth0:',
)

const prefix = (of: string) =>
  Type.Optional(text(`Put in front of each ${of}.`, { absent: 'none' }, prefixForm))

const twoFactor = section('What shows that the user has proven a second factor.', {
  claim: text('Claim of the token that says it, or a JSON Pointer to it.', { default: 'acr' }, claimForm),
  values: list('Values that mean a second factor. None: policies always see `two_factor` false.', claimForm),
})

const issuer = section('An issuer.', {
  issuer: text('The claim `iss` of its tokens, byte for byte.', {}, issuerForm),
  jwks_url: Type.Optional(
    text(
      'Address of its keys.',
      { absent: 'the one that {issuer}/.well-known/openid-configuration names', secret: 'password' },
      webUrlForm,
    ),
  ),
  audience: list('Values of `aud` of which a token must have one.', claimForm),
  authorized_parties: list(
    'Values of `azp` and `client_id`: a token must have one of these claims, and each that it has must be in the list.',
    claimForm,
  ),
  typ: Type.Optional(
    text('Header `typ` that a token must have, like at+jwt.', { absent: 'JWT, at+jwt or none' }, claimForm),
  ),
  required_claims: named(
    'Claims that a token must have, with their values. A list, and a scope in one text, must contain the value.',
    claimForm,
    text('The value.', { absent: 'none' }, claimForm),
  ),
  algorithms: list('Algorithms of signatures.', algorithmForm, ['RS256', 'ES256', 'EdDSA']),
  claims_map: named(
    'Claims that policies see, and the claim of the token that each is: a name, or a JSON Pointer like /app_metadata/team. `user_id` is `sub` unless it is named here.',
    mappedClaimForm,
    text('Claim of the token.', { absent: 'none' }, claimForm),
  ),
  role_claim: Type.Optional(
    text(
      'Claim of the token that policies see as `role`, or a JSON Pointer to it. The role of the database is always signed_in_role.',
      { absent: 'policies see no role' },
      claimForm,
    ),
  ),
  subject_prefix: prefix('user id of this issuer, so that no other issuer can name its users'),
  organization_prefix: prefix('organization id of this issuer'),
  max_lifetime: duration('Longest time from `iat` to `exp`; a token with a longer one is refused.', [
    '24h',
    '1m',
    '30d',
  ]),
  two_factor: twoFactor,
})

/** gateway.md 19. */
export const issuers = listOf(
  'OpenID Connect issuers whose JWTs decide who the caller is, beside or in place of the sessions of this service.',
  issuer,
)
