/**
 * Kills the database server of a client with -9 and restarts it, under 200 reads per second on this client and on another. Prints how soon
 * requests get 503, how long a 503 takes, how soon requests succeed again, and the effect on the other client. `node bench/server-restart.ts`
 */

import { randomBytes } from 'node:crypto'
import { HEADER } from '#kernel/http/header-names.ts'
import { startCrashableServer } from '#test/crashable-server.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import { atRate, ms, quantile, type Sample, type Send, sender } from './measure.ts'

const SECONDS = 8
const RATE = 200
const SCHEMA =
  'create table note (id int primary key, text text); insert into note values (1, repeat($$x$$, 100))'

/** A sample with the time of its response (performance.now()). */
type Stamped = Sample & { readonly at: number }

const cleanups: (() => Promise<void>)[] = []
const t = { after: (clean: () => Promise<void>) => void cleanups.push(clean) }
const home = await createTemporaryHome()
t.after(home.remove)
const [near, far] = [await startCrashableServer(t, SCHEMA), await startCrashableServer(t, SCHEMA)]
const adminKey = randomBytes(16).toString('hex')
const program = await startProgram(home.folder, {
  SERVICE_CLIENTS__NEAR__URL: near.url,
  SERVICE_CLIENTS__FAR__URL: far.url,
  SERVICE_KEY_12: adminKey,
})
try {
  const readOn = (client: string): Send =>
    sender(`${program.url}/data?view=note&eq_column=id&eq_value=1`, {
      headers: { apikey: adminKey, [HEADER.client]: client },
      connections: 30,
    })
  const phase = (send: Send) => atRate(send, RATE, SECONDS)
  const answers: Stamped[] = []
  const onFar = stamping(readOn('far'), answers)
  const onNear = readOn('near')

  await Promise.all([atRate(onNear, RATE, 2), atRate(onFar, RATE, 2)])
  const load = atRate(onFar, RATE, 3 * SECONDS + 2)
  const before = await phase(onNear)
  const killed = performance.now()
  await far.kill()
  const down = await phase(onNear)
  const started = performance.now()
  await far.start()
  const ready = performance.now()
  const after = await phase(onNear)
  await load

  const since = (from: number) => answers.filter(({ at }) => at >= from)
  const refused = answers.filter(({ status }) => status === 503)
  const first = (from: number, status: number) =>
    Math.min(...since(from).flatMap((answer) => (answer.status === status ? [answer.at - from] : [])))
  console.log(`first 503 after the kill: ${ms(first(killed, 503))}`)
  console.log(
    `a 503 takes: p50 ${ms(quantile(refused, 0.5))}, p99 ${ms(quantile(refused, 0.99))} (${refused.length})`,
  )
  console.log(`502, statements in progress: ${answers.filter(({ status }) => status === 502).length}`)
  console.log(`other failures: ${answers.filter(({ status }) => ![200, 502, 503].includes(status)).length}`)
  console.log(`start of the server: ${ms(ready - started)}`)
  console.log(`first 200 after the server's start: ${ms(first(ready, 200))}`)
  for (const [name, samples] of Object.entries({ before, down, after })) {
    const ratio = (share: number) => (quantile(samples, share) / quantile(before, share)).toFixed(2)
    const failed = samples.filter(({ status }) => status !== 200).length
    console.log(
      `the other client ${name}: p50 ${ms(quantile(samples, 0.5))} (${ratio(0.5)}), p99 ${ms(quantile(samples, 0.99))} (${ratio(0.99)}), ${failed} failed`,
    )
  }
} finally {
  await program.end('SIGTERM')
  for (const clean of cleanups) await clean()
}

function stamping(send: Send, into: Stamped[]): Send {
  return async () => {
    const sample = await send()
    into.push({ ...sample, at: performance.now() })
    return sample
  }
}
