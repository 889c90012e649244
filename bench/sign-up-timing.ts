/**
 * Checks that with `auth.hide_registered_emails` response time does not reveal whether an address has an account. Compares sign-ups with
 * verified, unverified and unregistered addresses, and sign-ins with their passwords, in turns. `node bench/sign-up-timing.ts [ROUNDS]`
 */

import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { withClient } from '#test/database.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import { compared, halves, printTimes, timed } from './compare-times.ts'
import { sender } from './measure.ts'

const ROUNDS = Number(process.argv[2] ?? 400)
/** Number of addresses of each kind. Each is used once, as an attacker would. */
const ADDRESSES = ROUNDS + 20

const home = await createTemporaryHome()
const program = await startProgram(home.folder, {
  SERVICE_AUTH__HIDE_REGISTERED_EMAILS: 'true',
  SERVICE_AUTH__EMAIL_PASSWORD__REQUIRE_EMAIL_VERIFICATION: 'true',
})
try {
  const auth = `${program.url}/api/auth`
  const headers = { 'content-type': 'application/json' }
  await addAccounts()

  const requestOf = (path: string, kind: string, { from, status }: { from: number; status: number }) => {
    let turn = from
    const body = () =>
      JSON.stringify({ name: 'Eve', email: `${kind}${turn++}@example.com`, password: 'the password of eve' })
    return { send: sender(`${auth}${path}`, { method: 'POST', headers, body, connections: 1 }), status }
  }
  const kinds = ['verified', 'unverified', 'unregistered']
  // Each sign-in uses the address of the previous round's sign-up.
  for (const kind of kinds) await requestOf('/sign-up/email', kind, { from: -1, status: 200 }).send()
  const samples = await timed(
    Object.fromEntries(
      kinds.flatMap((kind) => [
        [`sign-up, ${kind}`, requestOf('/sign-up/email', kind, { from: 0, status: 200 })],
        [`sign-in afterwards, ${kind}`, requestOf('/sign-in/email', kind, { from: -1, status: 403 })],
      ]),
    ),
    ROUNDS,
  )
  printTimes(samples)
  for (const step of ['sign-up', 'sign-in afterwards']) {
    const free = samples.get(`${step}, unregistered`) ?? []
    for (const kind of ['verified', 'unverified'])
      console.log(`${step}: ${kind} / unregistered ${compared(samples.get(`${step}, ${kind}`) ?? [], free)}`)
    console.log(`${step}: unregistered / unregistered ${compared(...halves(free))}`)
  }
} finally {
  await program.end('SIGTERM')
  await home.remove()
}

/** Adds accounts with a hash that matches no password. */
async function addAccounts(): Promise<void> {
  const data = (file: string) => path.join(home.folder, 'data', file)
  const password = (await readFile(data('postgres-password'), 'utf8')).trim()
  const server = await joinEmbedded(data('postgres'), password)
  if (server === undefined) throw new Error('the service does not run an embedded server')
  await withClient(server.url('postgres', password, 'gatehouse'), async (db) => {
    for (const kind of ['verified', 'unverified'])
      await db.query(
        `with added as (
           insert into service."user" (id, name, email, email_verified, created_at, updated_at)
           select gen_random_uuid(), 'Ada', $1 || i || '@example.com', $2, now(), now() from generate_series(-1, $3::int) i returning id
         )
         insert into service.account (id, user_id, provider_id, account_id, password, created_at, updated_at)
         select gen_random_uuid(), id, 'credential', id, $4, now(), now() from added`,
        [
          kind,
          kind === 'verified',
          ADDRESSES,
          `$argon2id$v=19$m=19456,t=2,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}`,
        ],
      )
  })
}
