import { type Static, Type } from 'typebox'
import { CurrentSession } from '#identity/schemas.ts'
import { named } from '#kernel/http/document/components.ts'
import { Id, Nullable, OneOf, Timestamp } from '#kernel/http/schemas.ts'
import { SignInAnswer } from '../door/finish-sign-in.ts'

/** In base64url without padding. The bounds are several times what authenticators send. */
const Binary = (maxLength: number) => Type.String({ maxLength, pattern: '^[A-Za-z0-9_-]*$' })

/** 1023 bytes (WebAuthn 3 section 7.1, step 25). */
const MAX_CREDENTIAL_ID = 1_364

const CREDENTIAL = {
  id: Binary(MAX_CREDENTIAL_ID),
  rawId: Binary(MAX_CREDENTIAL_ID),
  type: OneOf(['public-key']),
}

/** RegistrationResponseJSON of WebAuthn 3. Members that are not read are not listed. */
export const AttestationResponse = Type.Object(
  {
    ...CREDENTIAL,
    response: Type.Object(
      {
        clientDataJSON: Binary(8_192),
        attestationObject: Binary(65_536),
        transports: Type.Optional(Nullable(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 16 }))),
      },
      named('PasskeyAttestation'),
    ),
  },
  {
    ...named('PasskeyRegistration'),
    description: 'The result of navigator.credentials.create() as JSON; also accepted as JSON text',
  },
)
export type AttestationResponse = Static<typeof AttestationResponse>

/** AuthenticationResponseJSON of WebAuthn 3. */
export const AssertionResponse = Type.Object(
  {
    ...CREDENTIAL,
    response: Type.Object(
      {
        clientDataJSON: Binary(8_192),
        authenticatorData: Binary(8_192),
        signature: Binary(8_192),
        userHandle: Type.Optional(Nullable(Binary(128))),
      },
      named('PasskeySignature'),
    ),
  },
  {
    ...named('PasskeyAssertion'),
    description: 'The result of navigator.credentials.get() as JSON; also accepted as JSON text',
  },
)
export type AssertionResponse = Static<typeof AssertionResponse>

export const ChallengeId = Type.String({
  maxLength: 256,
  description: 'Names the challenge. For clients without cookies, which send it back with the response',
})

const Descriptors = Type.Array(
  Type.Object(
    { id: Type.String(), type: Type.String(), transports: Type.Optional(Type.Array(Type.String())) },
    named('PasskeyDescriptor'),
  ),
)
const Selection = Type.Object(
  {
    authenticatorAttachment: Type.Optional(Type.String()),
    residentKey: Type.String(),
    requireResidentKey: Type.Boolean(),
    userVerification: Type.String(),
  },
  named('PasskeySelection'),
)
const Verification = Type.Object({ userVerification: Type.String() }, named('PasskeyVerification'))
const RelyingParty = Type.Object({ id: Type.String(), name: Type.String() }, named('PasskeyRelyingParty'))
const UserEntity = Type.Object(
  { id: Type.String(), name: Type.String(), displayName: Type.String() },
  named('PasskeyUser'),
)
const Algorithm = Type.Object({ type: Type.String(), alg: Type.Integer() }, named('PasskeyAlgorithm'))
const Extensions = Type.Object({ credProps: Type.Optional(Type.Boolean()) }, named('PasskeyExtensions'))

export const CreationOptions = Type.Object(
  {
    challenge: Type.String(),
    challengeId: ChallengeId,
    rp: RelyingParty,
    user: UserEntity,
    pubKeyCredParams: Type.Array(Algorithm),
    timeout: Type.Integer({ description: 'Milliseconds' }),
    excludeCredentials: Descriptors,
    authenticatorSelection: Selection,
    attestation: Type.String(),
    extensions: Extensions,
  },
  {
    ...named('PasskeyCreationOptions'),
    description: 'For PublicKeyCredential.parseCreationOptionsFromJSON()',
  },
)

export const RequestOptions = Type.Object(
  {
    challenge: Type.String(),
    challengeId: ChallengeId,
    rpId: Type.String(),
    rp: RelyingParty,
    user: Type.Optional(UserEntity),
    timeout: Type.Integer({ description: 'Milliseconds' }),
    allowCredentials: Type.Optional({ ...Descriptors, description: 'Only with a session' }),
    userVerification: Type.String(),
    authenticatorSelection: Verification,
    extensions: Extensions,
  },
  { ...named('PasskeyRequestOptions'), description: 'For PublicKeyCredential.parseRequestOptionsFromJSON()' },
)

export const PasskeyRecord = Type.Object(
  {
    id: Id,
    name: Nullable(Type.String()),
    publicKey: Type.String({ description: 'COSE key in base64' }),
    userId: Id,
    credentialID: Type.String({ description: 'In base64url' }),
    counter: Type.Integer(),
    deviceType: Type.String({ description: '`singleDevice` or `multiDevice`' }),
    backedUp: Type.Boolean(),
    transports: Type.String({ description: 'Joined by commas' }),
    createdAt: Timestamp,
    aaguid: Type.String({ description: 'Model of the authenticator, all zero if it does not tell' }),
  },
  named('Passkey'),
)

/** The session is absent while a second factor is missing. */
export const PasskeySignIn = Type.Object(
  { ...SignInAnswer.properties, session: Type.Optional(CurrentSession) },
  named('PasskeySignedIn'),
)
