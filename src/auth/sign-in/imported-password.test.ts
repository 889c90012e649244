import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { findPassword, upsertPassword } from '#identity/accounts.ts'
import { attemptPassword, rehashPassword } from '#identity/passwords.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { createWorkQueue } from '#kernel/work-queue.ts'
import { linkIn, PASSWORD, testService, type User } from '#test/harness.ts'

const t = await testService()
const { kernel } = t.service
const { db, now, random } = kernel

/** A user whose password hash was imported. */
async function brought(password: string): Promise<User> {
  const user = await t.signUp('Ada')
  await upsertPassword(db, { id: uuidv7(now(), random), userId: user.id, password, now: now() })
  return user
}

const signIn = ({ email }: User, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

const guess = (on: Kernel, password: string) =>
  attemptPassword(on, { account: 'ada', stored: BCRYPT, userId: undefined, source: {} }, password)

const BCRYPT = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
const OURS = /^\$argon2id\$v=19\$m=1024,t=1,p=1\$/

const FOREIGN = [
  ['bcrypt', 'U*U', BCRYPT],
  [
    'PBKDF2',
    'passwd',
    'pbkdf2_sha256$1$salt$VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLxJypzM8Xm2RZkWZLOdd+8xfHG4RbHjC9UJESBB06GXgw==',
  ],
  [
    'Argon2 of other parameters',
    'password',
    '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc',
  ],
  [
    'better-auth',
    'Ａda ﬁlls ½ Ångström',
    '240525531f2f2c21059ddb1a2a5e5165:33f49c9cdcca9ab446e69a9155fc2b954956127efd75941a962b1c66b7418e8cab192ff9a06364a06f899b42d612c9a42a6dbe6ae443961de444bbdf8849e746',
  ],
] as const

test('a stored hash that its library cannot parse is answered like a wrong password', async () => {
  for (const maimed of [
    '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHR$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc',
    '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDcAA',
    '$argon2id$v=19$m=0256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc',
  ]) {
    const ada = await brought(maimed)
    const { status, body } = await signIn(ada, 'password')
    assert.deepEqual([status, body.code], [401, 'INVALID_EMAIL_OR_PASSWORD'], maimed)
  }
})

for (const [system, password, stored] of FOREIGN) {
  test(`a password hashed by ${system} signs in, and is then stored as ours`, async () => {
    const ada = await brought(stored)
    const wrong = await signIn(ada, `${password}x`)
    assert.deepEqual([wrong.status, wrong.body.code], [401, 'INVALID_EMAIL_OR_PASSWORD'])
    assert.equal(await findPassword(db, ada.id), stored, 'a wrong guess changes nothing')

    assert.equal((await signIn(ada, password)).status, 200)
    const renewed = await findPassword(db, ada.id)
    assert.match(renewed ?? '', OURS)
    assert.equal((await signIn(ada, password)).status, 200)
    assert.equal(await findPassword(db, ada.id), renewed, 'it is replaced once')
    assert.equal((await signIn(ada, `${password}x`)).status, 401)
  })
}

test('an imported hash of the password as typed, without NFKC, signs in', async () => {
  // bcrypt of the ligature itself: most systems do not normalize.
  const ada = await brought('$2b$04$nzMYCeCoNJzmX1pGZEvEcO8UMOchgKnT.rsJPpA.XZLlmk8LK14Wi')
  assert.equal((await signIn(ada, 'fish and Å')).status, 401)
  assert.equal((await signIn(ada, 'ﬁsh and Å')).status, 200)
  assert.equal((await signIn(ada, 'fish and Å')).status, 200, 'ours is of the NFKC form')
})

test('a stored text that is not a hash matches nothing, not even itself', async () => {
  const ada = await brought('correct horse battery')
  assert.equal((await signIn(ada, 'correct horse battery')).status, 401)
})

test('a new hash of the old password does not undo a change of password in between', async () => {
  const ada = await brought(BCRYPT)
  const changed = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK'
  await upsertPassword(db, { id: uuidv7(now(), random), userId: ada.id, password: changed, now: now() })
  await rehashPassword(kernel, { userId: ada.id, stored: BCRYPT, password: 'U*U' })
  assert.equal(await findPassword(db, ada.id), changed)
})

test('when no hash can be computed, the stored one stays and the sign-in succeeds', async () => {
  const ada = await brought(BCRYPT)
  const busy = { ...kernel, hashQueue: createWorkQueue(0, 0, () => {}) }
  await rehashPassword(busy, { userId: ada.id, stored: BCRYPT, password: 'U*U' })
  assert.equal(await findPassword(db, ada.id), BCRYPT)
  assert.ok(t.log.some((line) => line.includes('password_not_renewed')))
  assert.ok(!t.log.some((line) => line.includes(BCRYPT)))
})

test('the number of concurrent checks of imported hashes is bounded', async () => {
  const full = { ...kernel, foreignHashQueue: createWorkQueue(0, 0, () => {}) }
  await assert.rejects(guess(full, 'U*U'), { status: 503 })
})

test('sign-ins with imported hashes wait for each other, and other sign-ins do not wait for them', async () => {
  const imported = await brought(BCRYPT)
  const eve = await t.signUp('Eve')
  const busy = Promise.withResolvers<void>()
  const running = kernel.foreignHashQueue(() => busy.promise)
  const waiting = signIn(imported, 'U*U')
  while (kernel.foreignHashQueue.depth() === 0) await turn()
  assert.equal((await signIn(eve, PASSWORD)).status, 200)
  assert.equal(kernel.foreignHashQueue.depth(), 1, 'the other one still waits')
  busy.resolve()
  await running
  assert.equal((await waiting).status, 200)
})

test('ten seconds of imported hashes may wait, by the cost of each', async () => {
  const busy = Promise.withResolvers<void>()
  const { foreignHashQueue } = kernel
  const all = [foreignHashQueue(() => busy.promise, 1_000)]
  for (let each = 0; each < 10; each++) all.push(foreignHashQueue(async () => {}, 1_000))
  const refused = await signIn(await brought(BCRYPT), 'U*U')
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  busy.resolve()
  await Promise.all(all)
})

const COSTLY = [
  '$argon2id$v=19$m=1048576,t=4,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
  '$scrypt$ln=19,r=8,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
] as const

test('a stored hash that is too costly is never checked: the answer is that of a wrong password, and a reset link is mailed', async () => {
  for (const stored of COSTLY) {
    const ada = await brought(stored)
    await t.mails()
    const { foreignHashQueue } = kernel
    const answer = await signIn(ada, 'password')
    const stranger = await signIn({ ...ada, email: 'nobody@example.com' }, 'password')
    assert.deepEqual([answer.status, answer.text], [401, stranger.text])
    assert.equal(foreignHashQueue.depth(), 0)
    const mails = await t.mails()
    assert.equal(mails.length, 1)
    assert.match(mails[0] ?? '', /^Subject: Choose a new password/m)
    const { status, body } = await t.anon.get(linkIn(mails[0] ?? ''))
    assert.equal(status, 200)
    const reset = { token: body.token, newPassword: 'another good password' }
    assert.equal((await t.anon.post('/api/auth/reset-password', reset)).status, 200)
    assert.equal((await signIn(ada, 'another good password')).status, 200)
  }
})

test('a verb that needs a password that is too costly to check answers PASSWORD_CHANGE_REQUIRED and changes nothing', async () => {
  const ada = await brought(COSTLY[0])
  await t.mails()
  const asked = { currentPassword: 'password', newPassword: 'another good password' }
  const answers = [
    await ada.post('/api/auth/change-password', asked),
    await ada.post('/api/auth/delete-user', { password: 'password' }),
  ]
  for (const { status, body } of answers)
    assert.deepEqual([status, body.code], [403, 'PASSWORD_CHANGE_REQUIRED'])
  assert.equal(await findPassword(db, ada.id), COSTLY[0])
  assert.equal((await t.mails()).length, 2)
})

test('a password that NFKC changes is checked in both forms, at twice the cost', async () => {
  const weights: (number | undefined)[] = []
  const counting = Object.assign(
    <T>(work: () => Promise<T>, weight?: number) => {
      weights.push(weight)
      return work()
    },
    { expectRoom: () => {}, depth: () => 0 },
  )
  const watched = { ...kernel, foreignHashQueue: counting }
  await guess(watched, 'plain')
  await guess(watched, 'ﬁsh')
  const [once = 0, twice = 0] = weights
  assert.ok(once > 0)
  assert.equal(twice, 2 * once)
})
