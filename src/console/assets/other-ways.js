import { ApiError, auth, call } from './api.js'
import { addressOf, place } from './router.js'

/**
 * Lets the person choose a passkey, for the body of a request.
 * @param {import('./api.js').Asked} how
 */
export async function showPasskey(how) {
  const asking = call(auth('/passkey/generate-authenticate-options'), { method: 'POST', body: {}, ...how })
  const { challengeId, ...options } = await asking
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = await navigator.credentials.get({ publicKey }).catch(() => null)
  if (credential instanceof PublicKeyCredential) return { response: credential.toJSON(), challengeId }
  throw new ApiError({
    status: 0,
    code: 'no_passkey',
    message: 'No passkey was used.',
    hint: 'Try again, or take another way in. A passkey belongs to one host: that of server.public_url.',
  })
}

/**
 * Goes to a provider, which leads back to this place.
 * @param {string} path
 * @param {string} provider
 * @param {import('./api.js').Asked} how
 */
export async function visitProvider(path, provider, how) {
  const { path: at, query } = place.get()
  const here = addressOf(at, { ...query, ...NO_VISIT })
  const body = { provider, callbackURL: here, errorCallbackURL: here }
  const { url } = await call(auth(path), { method: 'POST', body, ...how })
  location.assign(url)
}

/** What such a way back adds to the address. */
const NO_VISIT = { error: undefined, twoFactorRedirect: undefined, methods: undefined }
