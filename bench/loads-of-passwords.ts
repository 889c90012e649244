import assert from 'node:assert/strict'
import { answerTo } from './answers.ts'
import type { Load } from './load/load.ts'
import { type CheckedLoad, CONNECTIONS, PASSWORD, signUp } from './loads.ts'

/** Many, because the sign-ins of one user would end its oldest sessions. */
const USERS = 50
/** More than can be made in a turn. */
const SIGN_UPS = 2_000

const SIGN_IN = { method: 'POST', path: '/api/auth/sign-in/email' }
const SIGN_UP = { method: 'POST', path: '/api/auth/sign-up/email' }

const headersOf = (url: string) => ({ 'content-type': 'application/json', origin: url })

/** Sign-ins by email and password in the form of better-auth, which ours is too. */
export async function passwordSignIns(
  url: string,
  connections = CONNECTIONS,
): Promise<CheckedLoad & { load: Load }> {
  const names = Array.from({ length: USERS }, (_, index) => `user${index}`)
  for (const name of names) await signUp(url, name)
  const requests = names.map((name) => ({
    ...SIGN_IN,
    body: JSON.stringify({ email: `${name}@example.com`, password: PASSWORD }),
  }))
  const load = { url, headers: headersOf(url), requests, connections }
  return {
    load,
    async check() {
      const [request = SIGN_IN] = requests
      const found = (await answerTo(load, request)) as { token: string; user: { email: string } }
      assert.equal(found.user.email, 'user0@example.com')
      const wrong = JSON.stringify({ email: 'user0@example.com', password: 'a wrong password' })
      await assert.rejects(answerTo(load, { ...SIGN_IN, body: wrong }), /401/)
    },
  }
}

/** Each signs up an address of its own. */
export function passwordSignUps(url: string) {
  let made = 0
  const next = () => {
    const name = `new${made++}`
    return { ...SIGN_UP, body: JSON.stringify({ name, email: `${name}@example.com`, password: PASSWORD }) }
  }
  const load = { url, headers: headersOf(url), connections: CONNECTIONS, once: true }
  return {
    load: async (): Promise<Load> => ({ ...load, requests: Array.from({ length: SIGN_UPS }, next) }),
    async check() {
      const request = next()
      const found = (await answerTo({ ...load, requests: [] }, request)) as { user: { email: string } }
      assert.equal(found.user.email, JSON.parse(request.body).email)
    },
  }
}
