import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { Secret } from 'otpauth'
import pg from 'pg'
import { approve, askForCodes, poll } from '#test/devices.ts'
import { ADMIN_KEY, actor, linkIn, PASSWORD, testService } from '#test/harness.ts'
import {
  codeOf,
  cookiesOf,
  enrolTotp,
  mailedCode,
  pendingSignIn,
  secretIn,
  TRUSTED_COOKIE,
} from '#test/second-factor.ts'

const t = await testService({
  config: { log: { level: 'trace' }, auth: { device: { clients: { tv: {} } } } },
})

/** Dumps all rows of all tables of a database as text. */
async function dump(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows: tables } = await client.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  const parts: string[] = []
  for (const { name } of tables) {
    const { rows } = await client.query(`select t::text as row, to_jsonb(t)::text as json from ${name} as t`)
    parts.push(name, ...rows.flatMap(({ row, json }) => [row, json]))
  }
  await client.end()
  return parts.join('\n')
}

test('no token, password or key appears in the log or in plain text in a database', async () => {
  const secrets = new Map<string, string>([
    ['password', PASSWORD],
    ['admin key', ADMIN_KEY],
  ])
  const know = (name: string, value: string | null | undefined) => {
    assert.ok(value, name)
    secrets.set(name, value)
    return value
  }
  // Users: every flow once. The dump is taken while mails are still in the queue.
  const ada = await t.signUp('Ada')
  know('session token of sign-up', ada.token)
  const signedIn = await t.anon.post('/api/auth/sign-in/email', { email: ada.email, password: PASSWORD })
  know('session token of sign-in', signedIn.body.token)
  await t.anon.post('/api/auth/sign-in/email', {
    email: ada.email,
    password: know('wrong password', 'a wrong password 123'),
  })
  const device = await askForCodes(t)
  know('device code', device.deviceCode)
  know('user code', device.userCode.replace('-', ''))
  await ada.get(`/api/auth/device?user_code=${device.userCode.replace('-', '')}`)
  await approve(ada, device)
  const fetched = await poll(t, device)
  know('session token of a device', fetched.body.access_token)
  await t.anon.post('/api/auth/send-verification-email', { email: ada.email })
  const [verify = ''] = await t.mails()
  const verifyToken = know(
    'verification token',
    new URL(linkIn(verify), 'http://x').searchParams.get('token'),
  )
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  const [reset = ''] = await t.mails()
  const resetToken = know('reset token', linkIn(reset).split('/').at(-1))
  // A second factor: an app and backup codes in force, another app begun, a mailed code and a pending sign-in, and a trusted device.
  const bob = await enrolTotp(t, await t.signUp('Bob'))
  know('secret of the app', bob.secret)
  know('bytes of that secret', Buffer.from(Secret.fromBase32(bob.secret).bytes).toString('hex'))
  for (const [index, code] of bob.backupCodes.entries()) know(`backup code ${index}`, code)
  know('backup code without hyphen', bob.backupCodes[0]?.replace('-', ''))
  const begun = await bob.post('/api/auth/two-factor/enable', { password: PASSWORD })
  know('secret of the begun app', secretIn(begun.body.totpURI))
  const trusted = cookiesOf(
    await t.anon.post('/api/auth/two-factor/verify-totp', {
      token: (await pendingSignIn(t.anon, bob.email)).body.token,
      ...{ code: codeOf(t, bob.secret), trustDevice: true },
    }),
  )
  know('token of the trusted device', trusted[TRUSTED_COOKIE])
  const pending = know('pending token', (await pendingSignIn(t.anon, bob.email)).body.token)
  know('pending token without prefix', pending.slice(4))
  await t.mails()
  await t.anon.post('/api/auth/two-factor/send-otp', { token: pending })
  const whileWaiting = await dump(t.controlUrl)
  const mailed = know('mailed code', mailedCode(await t.mails()))
  // Six digits also occur in other values, so the hash of the row is compared.
  const plainHashes = ['sha256', 'sha1', 'md5'].map((name) => hash(name, mailed))
  for (const [index, plain] of plainHashes.entries()) know(`plain hash ${index} of the mailed code`, plain)
  secrets.delete('mailed code')
  const withoutTimes = whileWaiting.replaceAll(/\d\d:\d\d:\d\d\.\d+/g, '')
  assert.doesNotMatch(withoutTimes, new RegExp(`\\b${mailed}\\b`), 'the mailed code')
  await t.anon.get(`/api/auth/reset-password/${resetToken}?callbackURL=%2Fx`)
  await t.anon.get(`/api/auth/verify-email?token=${verifyToken}x`)
  const newPassword = know('new password', 'a new password 456')
  await t.anon.post('/api/auth/reset-password', { token: resetToken, newPassword })

  // Data: valid and invalid keys in every place where a key may be sent, and failing requests.
  const key = await t.key(['*'])
  know('api key', key.apiKey)
  know('half of the api key', key.apiKey.split('.')[1])
  const rotated = await t.admin.post(`/admin/api-keys/${key.keyId}/rotate`, { grace_seconds: 60 })
  know('rotated key', rotated.body.data.api_key)
  await key.post('/management/tables', {
    table_name: 'notes',
    columns: [{ name: 'title', data_type: 'text' }],
  })
  await t.anon.get(`/data?view=notes&eq_column=title&eq_value=x&api_key=${key.apiKey}`, {
    headers: { 'x-service-client': 'default' },
  })
  for (const headers of [
    { 'x-api-key': ADMIN_KEY },
    { authorization: `Bearer ${key.apiKey}` },
    { 'x-service-key': `${key.apiKey}x` },
  ]) {
    await actor(t.url, { ...headers, 'x-service-client': 'default' }).post('/gateway/fetch', {
      table_name: 'notes',
    })
  }
  // Mails that are not yet delivered.
  await t.anon.post('/api/auth/forget-password', { email: ada.email })

  const log = t.log.join('\n')
  assert.ok(log.includes('/gateway/fetch'), 'the log has no requests of this run')
  const databases = [
    whileWaiting,
    await dump(t.controlUrl),
    await dump(t.loggingUrl),
    await dump(t.clientUrl),
  ].join('\n')
  assert.ok(databases.includes(ada.email), 'the dump has no rows of this run')
  for (const [name, value] of secrets) {
    assert.ok(!log.includes(value), `the log holds the ${name}`)
    assert.ok(!databases.includes(value), `a database holds the ${name}`)
  }
  assert.doesNotMatch(log, /\$argon2/)
  assert.ok(!log.includes(new URL(t.clientUrl).password), 'the log holds a database password')
})
