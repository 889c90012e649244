import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { test } from 'node:test'
import { createLog } from './log.ts'
import { redact, redactText } from './redact.ts'

const TOKEN = 'A'.repeat(43)
const KEY = `svc_0123456789abcdef.${TOKEN}`
const HASHES = [
  '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNoaGFzaGhhc2g',
  '$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW',
  '$pbkdf2-sha256$i=600000$c2FsdA$aGFzaA',
]

/** Texts in messages, where no key names a secret, and their redacted forms. */
const TEXTS: readonly (readonly [text: string, secret: string, left: string])[] = [
  ['connect to postgres://gatehouse:hunter2@db.example.com:5432/app', 'hunter2', 'db.example.com:5432/app'],
  ['connect to postgresql://gatehouse:p%40ss%3Aword@db/app?a=b', 'p%40ss%3Aword', '@db/app'],
  ['smtp://:only-a-password@mail.example.com', 'only-a-password', 'mail.example.com'],
  ['postgres://gatehouse@db/app?password=hunter2&sslmode=require', 'hunter2', 'sslmode=require'],
  ['host=db user=gatehouse password=hunter2 dbname=app', 'hunter2', 'dbname=app'],
  ["host=db password='hunter two' dbname=app", 'hunter two', 'dbname=app'],
  [`the key ${KEY} is unknown`, TOKEN, 'is unknown'],
  [`Authorization: Bearer ${TOKEN}`, TOKEN, 'Authorization: Bearer'],
  ['authorization: basic YWRhOmh1bnRlcjI=', 'YWRhOmh1bnRlcjI', 'basic'],
  [`GET /verify-email?token=${TOKEN}&callbackURL=/a`, TOKEN, 'callbackURL=/a'],
  [`GET /data?view=a&api_key=${KEY}&limit=1`, TOKEN, 'limit=1'],
  [`GET /callback/github?code=0123456789&state=${TOKEN}`, '0123456789', '/callback/github'],
  ['GET /device?user_code=BCDF-GHJK&device_code=0123456789', 'BCDF-GHJK', '/device?'],
  [
    `link: https://x.example/api/auth/reset-password/${TOKEN}?callbackURL=/`,
    TOKEN,
    '/api/auth/reset-password/',
  ],
  [`cookie: service-auth.session-token=${TOKEN}; theme=dark`, TOKEN, 'theme=dark'],
  ['signed with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw now', 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'now'],
  ...HASHES.map((hash): [string, string, string] => [`stored ${hash} here`, hash, 'here']),
]

test('texts that look like credentials are redacted in a message, and the rest stays', () => {
  for (const [text, secret, left] of TEXTS) {
    const cleaned = redactText(text)
    assert.ok(!cleaned.includes(secret), `${secret} survives in: ${cleaned}`)
    assert.ok(cleaned.includes(left), `${left} is lost from: ${cleaned}`)
  }
})

test('other texts are not changed', () => {
  const plain = [
    'POST /api/auth/sign-in/email 200', 'migration 0001_identity.sql applied', 'see https://example.com/docs?page=2#tokens', '10:15:30 @ 5 ms',
    'connection terminated unexpectedly', 'password queue is full', 'mailto:ada@example.com', 'a:b@c is no address of a server', 'request 01a1fbc3-db02-7c59-af72-2c9090a84d75',
  ] // biome-ignore format: a table
  for (const text of plain) assert.equal(redactText(text), text)
})

test('values of secret keys are redacted, in any form and at any depth', () => {
  const secret = 'hunter2'
  const keys = [
    'password', 'newPassword', 'current_password', 'passwd', 'token', 'sessionToken', 'access_token', 'refreshToken', 'idToken', 'secret',
    'client_secret', 'authorization', 'Authorization', 'cookie', 'set-cookie', 'apikey', 'api_key', 'apiKey', 'x-api-key', 'x-service-key', 'x-service-admin-key',
    'x-supabase-key', 'privateKey', 'hash', 'otp', 'code', 'connectionString', 'body',
  ] // biome-ignore format: a table
  for (const key of keys) {
    for (const value of [secret, [secret], { inner: secret }, Buffer.from(secret), 123456]) {
      const cleaned = JSON.stringify(redact({ request: { [key]: value } }))
      assert.doesNotMatch(cleaned, /hunter2|123456|104,117/, `${key}: ${cleaned}`)
    }
  }
})

test('whether a secret is set stays, and so do error codes', () => {
  const facts = { token: null, password: undefined, secret: false, url: 'http://localhost:8080' }
  assert.deepEqual(redact(facts), facts)
  for (const code of ['ECONNREFUSED', 'FST_ERR_VALIDATION', '28P01', '42601', 'validation_error', 1, 137]) {
    assert.deepEqual(redact({ code }), { code })
  }
  for (const code of ['123456', 'abcdefghij', '4/P7q7W91a-oMsCeLvIaQm6bTrgtp7', 654321]) {
    assert.deepEqual(redact({ code }), { code: '[redacted]' })
  }
})

test('an error keeps its name, message, code and cause, and loses other members of a driver', () => {
  const cause = Object.assign(new Error(`key ${KEY}`), {
    parameters: ['hunter2'],
    detail: 'Key (email)=(ada@example.com) exists',
  })
  const error = Object.assign(new TypeError('cannot reach postgres://a:hunter2@db/x', { cause }), {
    code: '28P01',
    config: { password: 'hunter2' },
  })
  const cleaned = redact({ error })
  const text = JSON.stringify(cleaned)
  assert.doesNotMatch(text, new RegExp(`hunter2|ada@example|${TOKEN}`))
  assert.match(text, /"type":"TypeError","message":"cannot reach postgres:\/\/\[redacted\]@db\/x"/)
  assert.match(text, /"code":"28P01"/)
  assert.match(text, /"cause":\{"type":"Error","message":"key \[redacted\]"/)
})

test('an AggregateError keeps its errors, redacted too', () => {
  const error = new AggregateError([new Error('postgres://a:hunter2@one/x'), new Error('two')], 'all failed')
  const text = JSON.stringify(redact({ error }))
  assert.doesNotMatch(text, /hunter2/)
  assert.match(text, /all failed.*postgres:\/\/\[redacted\]@one.*"two"/)
})

test('cycles, deep nesting and odd values do not break the log', () => {
  const cycle: Record<string, unknown> = { name: 'a' }
  cycle.self = cycle
  assert.match(JSON.stringify(redact(cycle)), /\[…\]/)
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  })
  log.info(
    { cycle, bytes: Buffer.alloc(3), when: new Date(0), none: undefined, big: 2n ** 64n, made: () => 1 },
    'odd',
  )
  assert.equal(lines.length, 1)
  assert.equal(JSON.parse(lines[0] ?? '').when, '1970-01-01T00:00:00.000Z')
})

test('a record is one line of JSON with level, time and message, redacted', () => {
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  })
  log.debug({}, 'not wanted')
  log.warn({ event: 'x', headers: { apikey: KEY }, note: 'two\nlines' }, `it was Bearer ${TOKEN}`)
  assert.equal(lines.length, 1)
  const [line = ''] = lines
  assert.equal(line.indexOf('\n'), line.length - 1)
  const { time, ...record } = JSON.parse(line)
  assert.match(time, /^\d{4}-\d\d-\d\dT.*Z$/)
  assert.deepEqual(record, {
    level: 'warn',
    event: 'x',
    headers: { apikey: '[redacted]' },
    note: 'two\nlines',
    msg: 'it was Bearer [redacted]',
  })
})

test('with a full disk, records are lost and the process goes on', {
  skip: !existsSync('/dev/full'),
}, async () => {
  const code = `
    const { createLog } = await import(${JSON.stringify(import.meta.resolve('./log.ts'))})
    for (const format of ['json', 'pretty']) {
      const log = createLog({ level: 'info', format })
      for (let turn = 0; turn < 20; turn++) log.info({ text: 'x'.repeat(100_000) }, 'on')
    }
    setTimeout(() => process.stderr.write('alive'), 50)`
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', full, 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said += chunk
  })
  const [exitCode] = await once(child, 'close')
  closeSync(full)
  assert.deepEqual([exitCode, said], [0, 'alive'])
})
