import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPassword, upsertPassword } from '#identity/accounts.ts'
import { renewPassword, verifyPassword } from '#identity/passwords.ts'
import { boundedWork } from '#kernel/heavy.ts'
import { uuidv7 } from '#kernel/random.ts'
import { testService, type User } from '#test/harness.ts'

const t = await testService()
const { kernel } = t.service
const { db, now, random } = kernel

/** Somebody whose password came along from another system. */
async function brought(password: string): Promise<User> {
  const user = await t.signUp('Ada')
  await upsertPassword(db, { id: uuidv7(now(), random), userId: user.id, password, now: now() })
  return user
}

const signIn = ({ email }: User, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })

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
    assert.equal(await findPassword(db, ada.id), renewed, 'once is enough')
    assert.equal((await signIn(ada, `${password}x`)).status, 401)
  })
}

test('a foreign hash of what was typed, and not of its NFKC form, signs in', async () => {
  // Made with bcrypt of the ligature as it stands: most systems do not normalise.
  const ada = await brought('$2b$04$nzMYCeCoNJzmX1pGZEvEcO8UMOchgKnT.rsJPpA.XZLlmk8LK14Wi')
  assert.equal((await signIn(ada, 'fish and Å')).status, 401)
  assert.equal((await signIn(ada, 'ﬁsh and Å')).status, 200)
  assert.equal((await signIn(ada, 'fish and Å')).status, 200, 'ours is of the NFKC form')
})

test('what is no hash is no password: not even its own text signs in', async () => {
  const ada = await brought('correct horse battery')
  assert.equal((await signIn(ada, 'correct horse battery')).status, 401)
})

test('a renewed hash does not undo a password that was changed meanwhile', async () => {
  const ada = await brought(BCRYPT)
  const changed = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK'
  await upsertPassword(db, { id: uuidv7(now(), random), userId: ada.id, password: changed, now: now() })
  await renewPassword(kernel, { userId: ada.id, stored: BCRYPT, password: 'U*U' })
  assert.equal(await findPassword(db, ada.id), changed)
})

test('when no hash can be made now, the stored one stays and nothing fails', async () => {
  const ada = await brought(BCRYPT)
  const busy = { ...kernel, heavy: boundedWork(0, 0, () => {}) }
  await renewPassword(busy, { userId: ada.id, stored: BCRYPT, password: 'U*U' })
  assert.equal(await findPassword(db, ada.id), BCRYPT)
  assert.ok(t.log.some((line) => line.includes('password_not_renewed')))
  assert.ok(!t.log.some((line) => line.includes(BCRYPT)))
})

test('foreign hashes are checked under the bound on hashes at once', async () => {
  await assert.rejects(verifyPassword({ ...kernel, heavy: boundedWork(0, 0, () => {}) }, BCRYPT, 'U*U'), {
    status: 503,
  })
})
