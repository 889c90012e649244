/**
 * Measures the latency of 300 get-session requests per second, idle and while 200 callers sign in as fast as they can, in one run.
 * `node bench/sign-in-flood.ts`
 */

import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import { atRate, flatOut, ms, quantile, type Sample, sender } from './measure.ts'

const SECONDS = 10
const RATE = 300
const FLOOD = 200
/** First seconds of the flood, reported separately because this process opens 200 connections at once. */
const ARRIVAL = 2

const home = await createTemporaryHome()
const program = await startProgram(home.folder)
try {
  const auth = `${program.url}/api/auth`
  const json = { 'content-type': 'application/json' }
  const signUp = async (name: string) => {
    const body = { name, email: `${name}@example.com`, password: 'correct horse battery' }
    const answer = await fetch(`${auth}/sign-up/email`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(body),
    })
    return { token: answer.headers.get('set-auth-token') ?? '', body: JSON.stringify(body) }
  }
  const { token } = await signUp('ada')
  // Many users, because the sign-ins of one would end its oldest sessions.
  const crowd = await Promise.all(Array.from({ length: 50 }, (_, index) => signUp(`user${index}`)))
  const getSession = sender(`${auth}/get-session`, {
    headers: { authorization: `Bearer ${token}` },
    connections: 20,
  })
  let turn = 0
  const signIn = sender(`${auth}/sign-in/email`, {
    method: 'POST',
    headers: json,
    body: () => crowd[turn++ % crowd.length]?.body ?? '',
    connections: FLOOD,
  })

  await atRate(getSession, RATE, 3)
  const idle = await atRate(getSession, RATE, SECONDS)
  const flood = flatOut(signIn, FLOOD, SECONDS + ARRIVAL)
  const arriving = await atRate(getSession, RATE, ARRIVAL)
  const flooded = await atRate(getSession, RATE, SECONDS)
  const signIns = await flood

  report('idle', idle)
  report(`in the first ${ARRIVAL} s of ${FLOOD} callers`, arriving)
  report('during the flood', flooded)
  for (const share of [0.5, 0.99]) {
    console.log(
      `p${share * 100} flood / idle: ${(quantile(flooded, share) / quantile(idle, share)).toFixed(1)}`,
    )
  }
  const refused = signIns.filter(({ status }) => status === 503)
  const waited = refused.filter(({ headers }) => headers['retry-after'] !== undefined)
  const done = signIns.filter(({ status }) => status === 200)
  console.log(
    `sign-ins: ${done.length} succeeded, ${refused.length} got 503, ${waited.length} of them with Retry-After`,
  )
  console.log(
    `get-session: ${flooded.filter(({ status }) => status !== 200).length} of ${flooded.length} failed`,
  )
} finally {
  await program.end('SIGTERM')
  await home.remove()
}

function report(name: string, samples: readonly Sample[]): void {
  console.log(
    `get-session ${name}: p50 ${ms(quantile(samples, 0.5))}, p99 ${ms(quantile(samples, 0.99))} (${samples.length} requests)`,
  )
}
