/**
 * Checks that response time does not reveal whether an account exists. Compares sign-ins with an unknown email to sign-ins with a known one
 * and a wrong password, and the same by username, in turns. `node bench/sign-in-timing.ts [ROUNDS]`
 */

import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import { compared, halves, printTimes, timed } from './compare-times.ts'
import { sender } from './measure.ts'

const ROUNDS = Number(process.argv[2] ?? 400)
/** Number of users, which are requested in turn, so that no row is in a cache more often than usual. */
const KNOWN = 50

const home = await createTemporaryHome()
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
  const guess = (path: string, body: (index: number) => object) => ({
    send: sender(`${auth}${path}`, {
      method: 'POST',
      headers: json,
      body: () => JSON.stringify({ ...body(turn++ % KNOWN), password: 'wrong horse battery' }),
      connections: 1,
    }),
    status: 401,
  })
  const samples = await timed(
    {
      'email, wrong password': guess('/sign-in/email', (index) => ({ email: `known${index}@example.com` })),
      'email, unknown': guess('/sign-in/email', (index) => ({ email: `other${index}@example.com` })),
      'username, wrong password': guess('/sign-in/username', (index) => ({ username: `known${index}` })),
      'username, unknown': guess('/sign-in/username', (index) => ({ username: `other${index}` })),
    },
    ROUNDS,
  )
  printTimes(samples)
  for (const by of ['email', 'username']) {
    const wrong = samples.get(`${by}, wrong password`) ?? []
    const unknown = samples.get(`${by}, unknown`) ?? []
    console.log(`${by}: unknown / wrong ${compared(unknown, wrong)}`)
    console.log(`${by}: wrong / wrong ${compared(...halves(wrong))}`)
  }
} finally {
  await program.end('SIGTERM')
  await home.remove()
}
