import type { Passkey } from '#identity/passkeys.ts'
import { type RelyingParty, userHandle } from './relying-party.ts'
import type { AssertionResponse, AttestationResponse } from './schemas.ts'

/** COSE algorithms of new passkeys: EdDSA, ES256 and RS256. */
export const ALGORITHMS = [-8, -7, -257] as const

/** In base64. An RSA key of 4096 bits has 700 characters; a longer one would make each check of a signature slow. */
const MAX_PUBLIC_KEY = 2_048

/** Expectations of a response: the challenge that it answers, the site, and whether the user has to be verified. */
type CeremonyExpectation = {
  readonly challenge: string
  readonly rp: RelyingParty
  readonly requireUserVerification: boolean
}

export type Attested = Pick<
  Passkey,
  'credentialID' | 'publicKey' | 'counter' | 'deviceType' | 'backedUp' | 'transports' | 'aaguid'
>

/** The new passkey of a registration, or the reason why it is refused. */
export async function verifyAttestation(
  response: AttestationResponse,
  expected: CeremonyExpectation,
): Promise<Attested | Rejected> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  return verifying(async () => {
    refuseCrossOrigin(response.response.clientDataJSON)
    const { registrationInfo: found } = await verifyRegistrationResponse({
      ...optionsOf(expected),
      response: {
        ...response,
        clientExtensionResults: {},
        response: {
          clientDataJSON: response.response.clientDataJSON,
          attestationObject: await withoutStatement(response.response.attestationObject),
        },
      },
      supportedAlgorithmIDs: [...ALGORITHMS],
    })
    if (found === undefined) throw new Error('The attestation is not valid')
    const { credential, credentialDeviceType: deviceType, credentialBackedUp: backedUp, aaguid } = found
    const publicKey = Buffer.from(credential.publicKey).toString('base64')
    if (credential.id !== response.id) throw new Error('The response is of another credential')
    if (publicKey.length > MAX_PUBLIC_KEY) throw new Error('The public key is too long')
    const transports = (response.response.transports ?? []).filter((name) => /^[a-z-]+$/.test(name)).join(',')
    const { id: credentialID, counter } = credential
    return { credentialID, publicKey, counter, deviceType, backedUp, transports, aaguid }
  })
}

type Asserted = {
  readonly counter: number
  readonly backedUp: boolean
  /** The authenticator has checked a PIN or a fingerprint. */
  readonly userVerified: boolean
}

/** The facts of a valid assertion by this passkey, or the reason why it is refused. `advanceCounter` has to accept its counter. */
export async function verifyAssertion(
  response: AssertionResponse,
  { userId, credentialID, publicKey }: Passkey,
  expected: CeremonyExpectation,
): Promise<Asserted | Rejected> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  return verifying(async () => {
    const { clientDataJSON, authenticatorData, signature, userHandle: handle } = response.response
    refuseCrossOrigin(clientDataJSON)
    if (handle != null && handle !== userHandle(userId)) throw new Error('The user handle is of another user')
    const { verified, authenticationInfo: found } = await verifyAuthenticationResponse({
      ...optionsOf(expected),
      response: {
        ...response,
        clientExtensionResults: {},
        response: { clientDataJSON, authenticatorData, signature },
      },
      // 0: the library would compare counters before it checks the signature, and not atomically.
      credential: { id: credentialID, publicKey: Uint8Array.fromBase64(publicKey), counter: 0 },
    })
    if (!verified) throw new Error('The signature is wrong')
    const { newCounter: counter, credentialBackedUp: backedUp, userVerified } = found
    return { counter, backedUp, userVerified }
  })
}

type Rejected = { readonly reason: string }

/** The library throws an error for every kind of invalid response. */
async function verifying<T>(verify: () => Promise<T>): Promise<T | Rejected> {
  try {
    return await verify()
  } catch (error) {
    // It quotes the response.
    return { reason: (error instanceof Error ? error.message : String(error)).slice(0, 300) }
  }
}

const optionsOf = ({ challenge, rp, requireUserVerification }: CeremonyExpectation) => ({
  expectedChallenge: challenge,
  expectedOrigin: [...rp.origins],
  expectedRPID: rp.id,
  requireUserVerification,
})

/** The frame of another site may not use our pages for a ceremony (WebAuthn 3 section 7.1, step 10). The library lets some pass. */
function refuseCrossOrigin(clientDataJSON: string): void {
  const clientData: unknown = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8'))
  const isCrossOrigin = typeof clientData === 'object' && clientData !== null && 'crossOrigin' in clientData
  if (isCrossOrigin && clientData.crossOrigin !== false)
    throw new Error('The response is from a frame of another site')
}

/**
 * The attestation object as if it had been made without attestation (fmt `none`). We ask for none and would not judge it. The library
 * would check certificates of the caller, and fetch the revocation lists that they name.
 */
async function withoutStatement(attestationObject: string): Promise<string> {
  const { decodeAttestationObject, isoCBOR } = await import('@simplewebauthn/server/helpers')
  const bytes = Uint8Array.from(Buffer.from(attestationObject, 'base64url'))
  const plain = new Map<string, string | Uint8Array | Map<string, string>>([
    ['fmt', 'none'],
    ['attStmt', new Map()],
    ['authData', decodeAttestationObject(bytes).get('authData')],
  ])
  return Buffer.from(isoCBOR.encode(plain)).toString('base64url')
}
