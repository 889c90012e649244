import type { Fixture } from './fixture.ts'
import { SEEDED } from './fixture.ts'

export type Kind = 'sign-up' | 'sign-in' | 'get-session' | 'fetch' | 'insert' | 'stream' | 'mail'

/** One request: its start and end (performance.now()) and its status, which is 0 for an incomplete response and -1 for a timeout. */
export type Sample = {
  readonly kind: Kind
  readonly began: number
  readonly ended: number
  readonly status: number
}

/** Acknowledged writes, which must not be lost. */
export type Written = {
  readonly emails: string[]
  readonly rows: number[]
  readonly mails: string[]
}

export type Load = {
  readonly samples: readonly Sample[]
  readonly written: Written
  /** Stops sending requests. Resolves when the last one has ended. */
  stop(): Promise<void>
}

/** Requests per second. */
const RATES: Readonly<Record<Kind, number>> = {
  'sign-up': 3,
  'sign-in': 3,
  'get-session': 25,
  fetch: 25,
  insert: 12,
  stream: 2,
  mail: 2,
}
export const KINDS = Object.keys(RATES) as readonly Kind[] // keys of a literal

/** Timeout of requests in milliseconds: `limits.timeout` with some tolerance. */
const PATIENCE = 65_000
const PASSWORD = 'correct horse battery'

export async function startLoad(fixture: Fixture): Promise<Load> {
  const samples: Sample[] = []
  const written: Written = { emails: [], rows: [], mails: [] }
  const send = await senders(fixture, written)
  const running = new Set<Promise<void>>()
  const ask = async (kind: Kind): Promise<void> => {
    const began = performance.now()
    const status = await send[kind]().catch((error: Error) => (error.name === 'TimeoutError' ? -1 : 0))
    samples.push({ kind, began, ended: performance.now(), status })
  }
  const timers = KINDS.map((kind) =>
    setInterval(() => {
      const pending = ask(kind).finally(() => running.delete(pending))
      running.add(pending)
    }, 1_000 / RATES[kind]),
  )
  return {
    samples,
    written,
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await Promise.all(running)
    },
  }
}

type Answer = { readonly status: number; readonly text: string }

async function senders(
  { url, headers }: Fixture,
  written: Written,
): Promise<Record<Kind, () => Promise<number>>> {
  let last = 0
  let nextMailed = 0
  const ask = async (
    path: string,
    method: string,
    body?: object,
    more: Record<string, string> = {},
  ): Promise<Answer> => {
    const json: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { ...json, ...more },
      signal: AbortSignal.timeout(PATIENCE),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, text: await answer.text() }
  }
  const person = () => `person-${++last}@example.com`
  const signUp = (email: string) =>
    ask('/api/auth/sign-up/email', 'POST', { name: 'Ada', email, password: PASSWORD })
  // Two users, because a sign-in ends a user's oldest session beyond `session.max_per_user`.
  const [visitor, email] = [person(), person()]
  const { token } = JSON.parse((await signUp(visitor)).text)
  await signUp(email)
  const session = { authorization: `Bearer ${token}` }
  const data = (path: string, method: string, body: object) => ask(path, method, body, headers)

  return {
    async 'sign-up'() {
      const newcomer = person()
      const { status } = await signUp(newcomer)
      if (status === 200) written.emails.push(newcomer)
      return status
    },
    'sign-in': async () =>
      (await ask('/api/auth/sign-in/email', 'POST', { email, password: PASSWORD })).status,
    'get-session': async () => (await ask('/api/auth/get-session', 'GET', undefined, session)).status,
    fetch: async () => {
      const body = { table_name: 'seeded', conditions: [{ column: 'number', value: 7 }] }
      return (await data('/gateway/fetch', 'POST', body)).status
    },
    async insert() {
      const number = ++last
      const row = { number, text: 'x' }
      const { status } = await data('/gateway/insert', 'PUT', { table_name: 'written', insert_body: row })
      if (status === 200) written.rows.push(number)
      return status
    },
    async stream() {
      const { status, text } = await data('/gateway/fetch', 'POST', { table_name: 'seeded', limit: SEEDED })
      // An aborted stream must not be a valid response.
      return status === 200 && JSON.parse(text).data.length !== SEEDED ? 500 : status
    },
    async mail() {
      // One mail per user, so that a missing mail can be identified.
      const to = written.emails[nextMailed]
      if (to === undefined) return 200
      nextMailed++
      const { status } = await ask('/api/auth/request-password-reset', 'POST', { email: to })
      if (status === 200) written.mails.push(to)
      return status
    },
  }
}
