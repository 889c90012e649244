/**
 * Does the time of an answer tell whether there is an account? Sign-ins with an unknown email, with a wrong password of
 * a known one, and the same by username, one after another in turns, so that whatever disturbs one disturbs all.
 * `node bench/sign-in-timing.ts [ROUNDS]`
 */

import { startProgram, temporaryHome } from '#test/journeys/program.ts'
import { ms, quantile, type Sample, type Send, sender } from './measure.ts'
import { inTurns } from './rounds.ts'

const ROUNDS = Number(process.argv[2] ?? 400)
/** Users that are asked for in turn, so that no row is warmer than it would be. */
const KNOWN = 50

const home = await temporaryHome()
const program = await startProgram(home.folder)
try {
  const auth = `${program.url}/api/auth`
  const json = { 'content-type': 'application/json' }
  for (let index = 0; index < KNOWN; index++) {
    const body = {
      name: 'Ada',
      email: `known${index}@example.com`,
      username: `known${index}`,
      password: 'correct horse battery',
    }
    const answer = await fetch(`${auth}/sign-up/email`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify(body),
    })
    if (!answer.ok) throw new Error(await answer.text())
  }

  let turn = 0
  const guess = (path: string, body: (index: number) => object): Send =>
    sender(`${auth}${path}`, {
      method: 'POST',
      headers: json,
      body: () => JSON.stringify({ ...body(turn++ % KNOWN), password: 'wrong horse battery' }),
      connections: 1,
    })
  const kinds: Readonly<Record<string, Send>> = {
    'email, wrong password': guess('/sign-in/email', (index) => ({ email: `known${index}@example.com` })),
    'email, unknown': guess('/sign-in/email', (index) => ({ email: `other${index}@example.com` })),
    'username, wrong password': guess('/sign-in/username', (index) => ({ username: `known${index}` })),
    'username, unknown': guess('/sign-in/username', (index) => ({ username: `other${index}` })),
  }
  const samples = new Map(Object.keys(kinds).map((name): [string, Sample[]] => [name, []]))
  for (let round = -20; round < ROUNDS; round++) {
    for (const [name, send] of inTurns(Object.entries(kinds), round)) {
      const sample = await send()
      if (sample.status !== 401) throw new Error(`${name}: answered ${sample.status}`)
      // The first rounds warm everything up.
      if (round >= 0) samples.get(name)?.push(sample)
    }
  }

  for (const [name, taken] of samples) {
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => ms(quantile(taken, share)))
    console.log(`${name.padEnd(26)} median ${middle}, quartiles ${low} to ${high} (${taken.length})`)
  }
  for (const by of ['email', 'username']) {
    const wrong = samples.get(`${by}, wrong password`) ?? []
    const unknown = samples.get(`${by}, unknown`) ?? []
    const halves = [0, 1].map((half) => wrong.filter((_, index) => index % 2 === half))
    const [even = [], odd = []] = halves
    console.log(`${by}: unknown / wrong ${ratio(unknown, wrong)}; wrong against itself ${ratio(even, odd)}`)
  }
} finally {
  await program.end('SIGTERM')
  await home.remove()
}

/** Of the medians, and how often one of the first takes longer than one of the second: 50 % cannot be told apart. */
function ratio(first: readonly Sample[], second: readonly Sample[]): string {
  const share = first.flatMap((a) => second.map((b) => (a.took > b.took ? 1 : a.took === b.took ? 0.5 : 0)))
  const slower = share.reduce((sum: number, one) => sum + one, 0) / share.length
  return `${(quantile(first, 0.5) / quantile(second, 0.5)).toFixed(3)}, slower in ${(slower * 100).toFixed(1)} %`
}
