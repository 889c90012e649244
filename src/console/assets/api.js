import { createStore } from './hooks.js'

/**
 * @typedef {Readonly<Record<string, string | number | boolean | undefined>>} Parameters
 * @typedef {{ by: 'session', userId?: string | undefined } | { by: 'key', key: string } | { by: 'nobody' }} Credential
 * @typedef {{ method?: string, query?: Parameters, body?: unknown, file?: { type: string, content: string }, client?: string, signal?: AbortSignal, isEntry?: boolean, asksNothing?: boolean, headers?: Readonly<Record<string, string>> }} Asked
 * `file`: a body that is no JSON. `isEntry`: a way in, which nobody is signed in for. `asksNothing`: fails where another call would ask the person.
 */

/** Facts of the installation that are no secret, in the page. @type {{ auth: string, version: string, docs: boolean, mail: boolean, receiver: boolean, providers: readonly string[] }} */
export const facts = JSON.parse(
  document.querySelector('meta[name=gatehouse]')?.getAttribute('content') ?? '{}',
)

/** The path of an endpoint of the authentication surface. @param {string} path */
export const auth = (path) => `${facts.auth}${path}`

/** The answer of the service that it did not do it, or that it did not answer. */
export class ApiError extends Error {
  /** @param {{ status: number, code: string, message: string, hint?: string | undefined, details?: any, requestId?: string | null }} facts */
  constructor({ status, code, message, hint, details, requestId }) {
    super(message)
    this.status = status
    this.code = code.toLowerCase()
    this.hint = hint
    this.details = details
    this.requestId = requestId ?? undefined
  }
}

/**
 * By what requests act: the cookie of a session, which no script can read, or a key that was pasted. It lives here only, and ends with the page.
 * The tabs of a browser share the cookie, and pages of other ports may replace it: each request names the user whom this page shows, and is
 * refused as another one.
 * @type {Credential}
 */
let credential = { by: 'session' }

/** @param {Credential} next */
export function actBy(next) {
  credential = next
}

/** The user who has signed in in another tab, in place of the one whom this tab shows. @type {import('./hooks.js').Store<{ id: string, name: string } | undefined>} */
export const otherUser = createStore(/** @type {{ id: string, name: string } | undefined} */ (undefined))

/**
 * Calls the API. Asks the person to sign in, or to show a proof, when that is what is missing, and then goes on.
 * @param {string} path
 * @param {Asked} [asked]
 * @returns {Promise<any>}
 */
export const call = (path, asked = {}) => withQuestions(asked, () => send(path, asked))

/**
 * @template T
 * @param {Asked} asked
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function withQuestions(asked, work) {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (error instanceof ApiError && error.code === 'another_user') throw await anotherUser()
      const question = asked.isEntry || asked.asksNothing ? undefined : questionFor(error)
      if (question === undefined || !(await ask(question))) throw error
    }
  }
}

/** Shows who has signed in in place of this page's user. */
async function anotherUser() {
  const { user } = await send(auth('/get-session'), { isEntry: true })
  otherUser.set({ id: user.id, name: user.name })
  return new ApiError({
    status: 409,
    code: 'another_user',
    message: 'Another user has signed in in this browser. Nothing was done.',
    hint: 'Continue as that user, or sign in as yourself again.',
  })
}

/** @param {unknown} error @returns {Question | undefined} */
function questionFor(error) {
  if (!(error instanceof ApiError) || credential.by !== 'session') return undefined
  if (error.status === 401 && WITHOUT_SESSION.includes(error.code)) return { kind: 'sign-in' }
  if (error.status === 403 && error.code === 'session_not_fresh')
    return { kind: 'proof', accepts: error.details?.accepts ?? ['password'] }
  return undefined
}

const WITHOUT_SESSION = ['unauthorized', 'session_required', 'invalid_session']

/** @param {string} path @param {Asked} asked */
async function send(path, asked) {
  const response = await request(path, asked)
  const text = await response.text().catch(unreachable)
  if (response.ok) return text === '' ? undefined : parse(text)
  throw failureOf(response, text)
}

/** @param {string} path @param {Asked} asked */
export async function request(
  path,
  { method = 'GET', query, body, file, client, signal, isEntry = false, ...more },
) {
  const text = file?.content ?? (body === undefined ? undefined : JSON.stringify(body))
  const headers = {
    accept: 'application/json',
    ...more.headers,
    ...(client !== undefined && { 'x-service-client': client }),
    ...(text !== undefined && { 'content-type': file?.type ?? 'application/json' }),
  }
  return fetchAs(path + searchOf(query), { method, headers, text, signal, as: credential, isEntry })
}

/**
 * @typedef {{ method: string, headers: Readonly<Record<string, string>>, text?: string | undefined, signal?: AbortSignal | undefined, as: Credential, isEntry?: boolean }} Request
 * @param {string} address
 * @param {Request} asked
 */
function fetchAs(address, { method, headers, text, signal, as, isEntry = false }) {
  return fetch(address, {
    ...{ method, headers: { ...headers, ...credentialHeaders(as, isEntry) }, cache: 'no-store' },
    credentials: as.by === 'session' ? 'same-origin' : 'omit',
    ...(text !== undefined && { body: text }),
    ...(signal && { signal }),
  }).catch(unreachable)
}

/** @param {Credential} as @param {boolean} isEntry @returns {Record<string, string>} */
function credentialHeaders(as, isEntry) {
  if (as.by === 'key') return { apikey: as.key }
  if (as.by === 'nobody') return {}
  const { userId } = as
  return {
    'x-service-session': '1',
    ...(userId !== undefined && !isEntry && { 'x-service-expected-user': userId }),
  }
}

/**
 * Sends a request as it is written, and answers the response whatever it says; `read` takes its body. By default as the person.
 * @template T
 * @param {string} address
 * @param {Omit<Request, 'as'> & { as?: Credential | undefined }} asked
 * @param {(response: Response) => Promise<T>} read
 * @returns {Promise<T>}
 */
export async function exchange(address, { as, ...asked }, read) {
  if (as !== undefined) return read(await fetchAs(address, { ...asked, as }))
  return withQuestions({}, async () => {
    const response = await fetchAs(address, { ...asked, as: credential })
    if ([401, 403, 409].includes(response.status)) {
      // A copy, since `read` has the body.
      const failure = failureOf(response, await response.clone().text().catch(unreachable))
      if (failure.code === 'another_user' || questionFor(failure) !== undefined) throw failure
    }
    return read(response)
  })
}

/** @param {Parameters} [query] */
function searchOf(query = {}) {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** @param {unknown} error @returns {never} */
export function unreachable(error) {
  if (error instanceof DOMException && error.name === 'AbortError') throw error
  throw new ApiError({
    status: 0,
    code: 'unreachable',
    message: 'The service does not answer.',
    hint: 'Check that it runs and that this machine is online, and try again. What you typed is still there.',
  })
}

/** @param {Response} response @param {string} text */
export function failureOf(response, text) {
  const { status, headers } = response
  const requestId = headers.get('x-request-id')
  const wait = headers.get('retry-after')
  const known = envelopeIn(text)
  const message = textIn(known.message) ?? `The service has answered ${status}`
  const code = textIn(known.code) ?? `status_${status}`
  const details = known.details ?? known.data?.details
  const advice = textIn(known.error)
  const hint = wait !== null ? `Try again in ${wait} seconds.` : advice === message ? undefined : advice
  return new ApiError({ status, code, message, hint, details, requestId })
}

/** @param {unknown} value */
const textIn = (value) => (typeof value === 'string' ? value : undefined)

/** A proxy in between may answer something else than our JSON, or than JSON. @param {string} text @returns {any} */
function envelopeIn(text) {
  try {
    const value = parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/**
 * Numbers of the database have more digits than those of JavaScript. One that would lose some is kept as its text, in an object that
 * JSON.stringify writes as it was read.
 * @param {string} text
 * @returns {any}
 */
export const parse = (text) => JSON.parse(text, /** @type {any} */ (keepDigits))

/**
 * @param {string} _name
 * @param {unknown} value
 * @param {{ source?: string }} [context] absent in browsers that do not tell the source
 */
function keepDigits(_name, value, { source } = {}) {
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value
  return /** @type {{ rawJSON(text: string): unknown }} */ (/** @type {unknown} */ (JSON)).rawJSON(source)
}

/**
 * A question to the person, while an act waits: to sign in again, to show a proof, or to agree.
 * @typedef {{ kind: 'sign-in' } | { kind: 'proof', accepts: readonly string[] } | { kind: 'consent', title: string, text: string, verb: string, isDangerous?: boolean }} Question
 * @typedef {Question & { answer(isDone: boolean): void }} OpenQuestion
 */

/** @type {import('./hooks.js').Store<OpenQuestion | undefined>} */
export const openQuestion = createStore(/** @type {OpenQuestion | undefined} */ (undefined))

/** @type {{ kind: string, answered: Promise<boolean> } | undefined} */
let asking

/**
 * True when the person has done it. Requests that fail together for one reason ask once.
 * @param {Question} question
 * @returns {Promise<boolean>}
 */
export async function ask(question) {
  if (asking?.kind === question.kind && question.kind !== 'consent') return asking.answered
  while (asking !== undefined) await asking.answered
  const { promise, resolve } = /** @type {PromiseWithResolvers<boolean>} */ (Promise.withResolvers())
  asking = { kind: question.kind, answered: promise }
  openQuestion.set({
    ...question,
    answer(isDone) {
      asking = undefined
      openQuestion.set(undefined)
      resolve(isDone)
    },
  })
  return promise
}
