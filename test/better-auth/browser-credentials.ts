import type { Authenticator } from '#test/authenticator.ts'

/**
 * Gives this process the credential API of a browser whose page has this origin, with an authenticator in software. Clients that use
 * `navigator.credentials` then work outside a browser.
 */
export function installCredentials(origin: string, current: () => Authenticator): void {
  const json = (binary: ArrayBuffer) => Buffer.from(binary).toString('base64url')
  const credentials = {
    create: async ({ publicKey: { challenge, rp, user } }: Creation) => {
      const options = { challenge: json(challenge), rp, user: { id: json(user.id) } }
      const { response, ...credential } = current().create(options, origin)
      return {
        ...credential,
        ...{
          rawId: binary(credential.rawId),
          getClientExtensionResults: () => ({ credProps: { rk: true } }),
        },
        response: { ...binaries(response), getTransports: () => response.transports },
      }
    },
    get: async ({ publicKey: { challenge, rpId } }: Request) => {
      const { response, ...credential } = current().get({ challenge: json(challenge), rpId }, origin)
      return {
        ...{ ...credential, rawId: binary(credential.rawId), getClientExtensionResults: () => ({}) },
        response: binaries(response),
      }
    },
  }
  Object.defineProperty(navigator, 'credentials', { value: credentials, configurable: true })
  // The clients ask whether there is such a function, and do not call it.
  Object.defineProperty(globalThis, 'PublicKeyCredential', { value: () => {}, configurable: true })
}

type Creation = {
  publicKey: { challenge: ArrayBuffer; rp: { id: string }; user: { id: ArrayBuffer } }
}
type Request = { publicKey: { challenge: ArrayBuffer; rpId: string } }

const binary = (text: string): ArrayBuffer => Uint8Array.from(Buffer.from(text, 'base64url')).buffer
const binaries = (response: object) =>
  Object.fromEntries(
    Object.entries(response).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, binary(value)]] : [],
    ),
  )
