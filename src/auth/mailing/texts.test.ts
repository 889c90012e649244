import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PASSWORD, testService, type User } from '#test/harness.ts'
import { proveAddress } from '#test/proven-address.ts'

const t = await testService()
const ADVERTISEMENT = 'Cheap-pills-at-evil.example'
const DAY = 86_400_000

/** Every mail that a user can receive, with a fresh session and with an old one. */
async function everyMail(user: User): Promise<readonly string[]> {
  const change = (newEmail: string) => user.post('/api/auth/change-email', { newEmail })
  await t.anon.post('/api/auth/send-verification-email', { email: user.email })
  await t.anon.post('/api/auth/forget-password', { email: user.email })
  await change(`${ADVERTISEMENT}@fresh.example`)
  await user.post('/api/auth/change-password', { currentPassword: PASSWORD, newPassword: PASSWORD })
  t.advance(DAY + 1_000)
  await change(`${ADVERTISEMENT}@late.example`)
  await user.post('/api/auth/delete-user')
  return t.mails()
}

const body = (mail: string): string =>
  mail
    .replace(/=\r?\n/g, '')
    .split(/\r?\n\r?\n/)
    .slice(1)
    .join('\n\n')

async function named(name: string): Promise<User> {
  const user = await t.signUp('Ada')
  assert.equal((await user.post('/api/auth/update-user', { name })).status, 200)
  return user
}

test('a mail to an unproven address contains no text of a caller', async () => {
  const mails = await everyMail(await named(ADVERTISEMENT))
  assert.ok(mails.length >= 4, `${mails.length} mails`)
  for (const mail of mails) assert.doesNotMatch(body(mail), /pills/i, mail)
})

test('a user with a proven address is greeted by name, and the mail names the new address', async () => {
  const ada = await named('Ada King')
  await proveAddress(t, ada)
  const own = (await everyMail(ada)).filter((mail) => mail.includes(`To: ${ada.email}`))
  for (const mail of own) assert.match(body(mail), /Hello Ada King,/)
  assert.ok(own.length >= 4)
  assert.ok(own.some((mail) => /to cheap-pills-at-evil\.example@/.test(body(mail))))
})
