import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import pg from 'pg'
import { deleteExpiredKnownDevices } from '#identity/known-devices.ts'
import {
  type Actor,
  type Answer,
  linkIn,
  PASSWORD,
  testClock,
  testService,
  type User,
} from '#test/harness.ts'
import { cookiesOf } from '#test/second-factor.ts'

/** The limits by address would apply first. */
const MANY = { requests: 1_000_000 }
const t = await testService({
  // The clock is turned by hand only: on a slow machine a wait must not run out.
  clock: testClock({ isStopped: true }),
  config: {
    auth: { trusted_origins: ['https://app.example'] },
    rate_limits: {
      enabled: true,
      rules: {
        ...{ sign_in: MANY, sign_up: MANY, two_factor: MANY, mail: MANY, mail_recipient: MANY },
        ...{ default: MANY, sign_in_account: { requests: 4 } },
      },
    },
  },
})
const { db } = t.service.kernel

const AUTH = '/api/auth'
const COOKIE = 'service-auth.known-device'
const HEADER = 'x-service-known-device'
const DAY = 86_400_000
const OTHER = 'another good password'

/** A caller who shows a known device, by header as applications do. */
const on = (device: string | undefined): Actor => ({
  ...t.anon,
  post: (path, body) =>
    t.anon.post(path, body, { headers: device === undefined ? {} : { [HEADER]: device } }),
})
const signIn = (by: Actor, email: string, password = PASSWORD) =>
  by.post(`${AUTH}/sign-in/email`, { email, password })
const deviceOf = ({ headers }: Answer): string => headers.get(HEADER) ?? ''
const devicesOf = (userId: string) =>
  db.selectFrom('knownDevice').selectAll().where('userId', '=', userId).execute()

/** Guesses until the bucket is empty, and once more; returns the answers' statuses. */
async function exhaust(guess: () => Promise<Answer>): Promise<number[]> {
  const statuses: number[] = []
  for (let tries = 0; tries < 5; tries++) {
    statuses.push((await guess()).status)
    t.advance(20_000)
  }
  return statuses
}
const guessing = (by: Actor, email: string) => exhaust(() => signIn(by, email, 'a guess'))
const shown = (user: Actor, password: string) => user.post(`${AUTH}/two-factor/enable`, { password })

async function reset(email: string, newPassword: string): Promise<void> {
  await t.mails()
  await t.anon.post(`${AUTH}/forget-password`, { email })
  const token = linkIn((await t.mails()).at(-1) ?? '').split('/').at(-1) // biome-ignore format: one line reads better
  assert.equal((await t.anon.post(`${AUTH}/reset-password`, { token, newPassword })).status, 200)
}

test('guesses of strangers shut out neither a browser that has signed in before nor a session', async () => {
  const ada = await t.signUp('Ada')
  const device = deviceOf(await signIn(t.anon, ada.email))
  assert.deepEqual(await guessing(t.anon, ada.email), [401, 401, 401, 401, 429])
  assert.equal((await signIn(t.anon, ada.email)).status, 429, 'a stranger with the right password')
  const byHeader = await signIn(on(device), ada.email)
  assert.deepEqual([byHeader.status, byHeader.body.user?.id], [200, ada.id])
  const byCookie = await t.anon.post(
    `${AUTH}/sign-in/email`,
    { email: ada.email, password: PASSWORD },
    { headers: { cookie: `${COOKIE}=${device}` } },
  )
  assert.equal(byCookie.status, 200)
  assert.equal((await shown(ada, PASSWORD)).status, 200)
  assert.equal((await signIn(t.anon, ada.email)).status, 429, 'the right password there clears nothing here')
})

test('guesses on a known device and in a session have an end, and shut out no one else', async () => {
  const ada = await t.signUp('Ada')
  const device = deviceOf(await signIn(t.anon, ada.email))
  const other = deviceOf(await signIn(t.anon, ada.email))
  assert.notEqual(device, other)
  assert.deepEqual(await guessing(on(device), ada.email), [401, 401, 401, 401, 429])
  assert.equal((await signIn(on(device), ada.email)).status, 429)
  assert.deepEqual(await exhaust(() => shown(ada, 'a guess')), [400, 400, 400, 400, 429])
  assert.equal((await shown(ada, PASSWORD)).status, 429)
  for (const by of [t.anon, on(other)]) assert.equal((await signIn(by, ada.email)).status, 200)
})

test('a device is known to the accounts that have signed in on it, and a made-up one to none', async () => {
  const [ada, bob] = [await t.signUp('Ada'), await t.signUp('Bob')]
  const device = deviceOf(await signIn(t.anon, ada.email))
  for (const victim of [ada, bob]) await guessing(t.anon, victim.email)
  for (const value of [device, 'A'.repeat(43), `v1.${'A'.repeat(80)}`, ''])
    assert.equal((await signIn(on(value), bob.email)).status, 429, value)
  t.advance(900_000)
  const family = deviceOf(await signIn(on(device), bob.email))
  for (const victim of [ada, bob]) {
    await guessing(t.anon, victim.email)
    assert.equal((await signIn(on(family), victim.email)).status, 200, victim.email)
  }
})

test('an address without an account answers a device like one with an account, by as many statements', async () => {
  const ada = await t.signUp('Ada')
  const device = deviceOf(await signIn(t.anon, ada.email))
  const bob = await t.signUp('Bob')
  const statements = async (email: string) => {
    const query = mock.method(pg.Client.prototype, 'query')
    try {
      assert.equal((await signIn(on(device), email, 'a guess')).status, 401)
      return query.mock.calls
        .map(({ arguments: [statement] }) =>
          typeof statement === 'string' ? statement : ((statement as { text?: string }).text ?? ''),
        )
        .filter((text) => /known_device|rate_limit/.test(text) && !/with counted as/.test(text)).length
    } finally {
      query.mock.restore()
    }
  }
  assert.equal(await statements('nobody@example.com'), await statements(bob.email))
  for (const email of ['nobody@example.com', bob.email])
    assert.deepEqual((await guessing(on(device), email)).slice(-2), [429, 429], email)
})

test('the cookie is hidden, lasts 180 days from the last sign-in, is no credential and is stored as a hash', async () => {
  const ada = await t.signUp('Ada')
  const answer = await signIn(t.anon, ada.email)
  const device = deviceOf(answer)
  assert.equal(cookiesOf(answer)[COOKIE], device)
  assert.match(
    answer.headers.getSetCookie().find((cookie) => cookie.startsWith(COOKIE)) ?? '',
    /Max-Age=15552000; Path=\/; HttpOnly; Secure; SameSite=Lax/,
  )
  const session = await t.anon.get(`${AUTH}/get-session`, {
    headers: { authorization: `Bearer ${device}`, cookie: `${COOKIE}=${device}` },
  })
  assert.equal(session.status, 401)
  t.advance(179 * DAY)
  await signIn(on(device), ada.email)
  t.advance(179 * DAY)
  await guessing(t.anon, ada.email)
  assert.equal((await signIn(on(device), ada.email)).status, 200)
  t.advance(180 * DAY)
  await guessing(t.anon, ada.email)
  assert.equal((await signIn(on(device), ada.email)).status, 429, 'expired')
  assert.ok((await deleteExpiredKnownDevices(db, t.service.kernel.now(), 100)) > 0)
  assert.deepEqual(await devicesOf(ada.id), [])
})

test('a page of another origin may read the header, and a sign-in that is not complete gives no device', async () => {
  const ada = await t.signUp('Ada')
  const refused = await signIn(t.anon, ada.email, 'a guess')
  assert.equal(refused.headers.get(HEADER), null)
  assert.deepEqual(
    refused.headers.getSetCookie().filter((cookie) => cookie.startsWith(COOKIE)),
    [],
  )
  const read = await t.anon.get('/health', { headers: { origin: 'https://app.example' } })
  assert.match(read.headers.get('access-control-expose-headers') ?? '', /x-service-known-device/)
})

test('a change of the password, a reset and the first proof end known devices, whose identifiers do not come back', async () => {
  const ada = await t.signUp('Ada')
  let password = PASSWORD
  const ways: Readonly<Record<string, (ada: User) => Promise<unknown>>> = {
    'change-password': (user) =>
      user.post(`${AUTH}/change-password`, { currentPassword: password, newPassword: OTHER }),
    'first proof and reset': () => reset(ada.email, OTHER),
    reset: () => reset(ada.email, OTHER),
  }
  for (const [name, end] of Object.entries(ways)) {
    const device = deviceOf(await signIn(t.anon, ada.email, password))
    await end(ada)
    password = OTHER
    assert.deepEqual(await devicesOf(ada.id), [], name)
    await guessing(t.anon, ada.email)
    assert.equal((await signIn(on(device), ada.email, password)).status, 429, name)
    t.advance(900_000)
    const next = deviceOf(await signIn(on(device), ada.email, password))
    await guessing(t.anon, ada.email)
    assert.equal((await signIn(on(device), ada.email, password)).status, 429, `${name}: the old one`)
    assert.equal((await signIn(on(next), ada.email, password)).status, 200, `${name}: the new one`)
    t.advance(900_000)
  }
})

test('an identifier that was stolen does not come back because another account of the thief knows it', async () => {
  const [ada, mal] = [await t.signUp('Ada'), await t.signUp('Mal')]
  const stolen = deviceOf(await signIn(t.anon, ada.email))
  const first = deviceOf(await signIn(on(stolen), mal.email))
  await reset(ada.email, OTHER)
  // A younger row of the same identifier, in another account.
  const second = await t.signUp('Moe')
  assert.equal((await signIn(on(first), second.email)).status, 200)
  await mal.post(`${AUTH}/delete-user`, { password: PASSWORD })
  const next = deviceOf(await signIn(on(stolen), ada.email, OTHER))
  assert.deepEqual(await guessing(on(stolen), ada.email), [401, 401, 401, 401, 429])
  assert.equal((await signIn(on(next), ada.email, OTHER)).status, 200)
  assert.equal((await devicesOf(ada.id)).length, 1)
})

test('a reset by mail lets the owner in, however many guesses there were', async () => {
  const ada = await t.signUp('Ada')
  await guessing(t.anon, ada.email)
  await reset(ada.email, OTHER)
  assert.equal((await signIn(t.anon, ada.email, OTHER)).status, 200)
})

test('a user has twenty known devices, those that have signed in last; deleting the user deletes them', async () => {
  const ada = await t.signUp('Ada')
  const first = deviceOf(await signIn(t.anon, ada.email))
  const second = deviceOf(await signIn(t.anon, ada.email))
  for (let more = 0; more < 20; more++) {
    t.advance(1_000)
    if (more === 10) await signIn(on(second), ada.email)
    else await signIn(t.anon, ada.email)
  }
  assert.equal((await devicesOf(ada.id)).length, 20)
  await guessing(t.anon, ada.email)
  assert.equal((await signIn(on(second), ada.email)).status, 200)
  assert.equal((await signIn(on(first), ada.email)).status, 429)
  assert.equal((await ada.post(`${AUTH}/delete-user`, { password: PASSWORD })).status, 200)
  assert.deepEqual(await devicesOf(ada.id), [])
})

test('more sessions and devices are not any number of guesses', async () => {
  const ada = await t.signUp('Ada')
  let passed = 0
  for (let round = 0; round < 8; round++) {
    const device = deviceOf(await signIn(t.anon, ada.email))
    for (let tries = 0; tries < 4; tries++) {
      if ((await signIn(on(device), ada.email, 'a guess')).status === 401) passed++
      t.advance(10_000)
    }
  }
  assert.equal(passed, 20, 'five times the guesses of one')
  assert.equal((await signIn(t.anon, ada.email)).status, 200, 'strangers count by themselves')
})

test('of fifty guesses at once from one device or session, no more pass than one after the other', async () => {
  const ada = await t.signUp('Ada')
  const device = deviceOf(await signIn(t.anon, ada.email))
  const ways = [() => signIn(on(device), ada.email, 'a guess'), () => shown(ada, 'a guess')]
  for (const guess of ways) {
    const answers = await Promise.all(Array.from({ length: 50 }, guess))
    const passed = answers.filter(({ status }) => status !== 429).map(({ status }) => status)
    // One at the first wait, which another may take.
    assert.ok(passed.length >= 1 && passed.length <= 2, `${passed}`)
  }
  assert.equal((await signIn(t.anon, ada.email)).status, 200)
})
