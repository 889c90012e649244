import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linesOf } from '#kernel/lines.ts'
import { controlDatabase, PASSWORD, testKernel, testService } from '#test/harness.ts'
import { hashPassword } from '../passwords.ts'
import { type ImportReport, importUsers } from './import.ts'

const t = await testService()
const { kernel } = t.service
const { db } = kernel

type Imported = ImportReport & { readonly complaints: readonly string[] }

/** Each line is an object, or a text as it is. */
async function run(lines: readonly unknown[], dryRun = false, dropCostlyHashes = false): Promise<Imported> {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const complaints: string[] = []
  async function* chunks() {
    yield Buffer.from(text)
  }
  const report = await importUsers(kernel, linesOf(chunks()), {
    dryRun,
    dropCostlyHashes,
    onBadLine: (number, why) => complaints.push(`${number}: ${why}`),
  })
  return { ...report, complaints }
}

const counts = ({ added, alreadyThere, bad }: ImportReport) => [added, alreadyThere, bad]
const found = (email: string) =>
  db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst()
const users = async () => (await db.selectFrom('user').select('id').execute()).length

test('a user is imported with every member of the line, and signs in with the old password', async () => {
  const id = '0192f0a4-7b5c-7c3e-9d2f-1a2b3c4d5e6f'
  const report = await run([
    {
      id: id.toUpperCase(),
      email: ' Ada@Example.com ',
      name: 'Ada Lovelace',
      emailVerified: true,
      displayUsername: 'Ada_L',
      image: 'https://example.com/ada.png',
      role: 'admin',
      createdAt: '2020-02-29T12:30:00.5+01:00',
      passwordHash: await hashPassword(kernel, PASSWORD),
    },
  ])
  assert.deepEqual(counts(report), [1, 0, 0])
  const createdAt = new Date('2020-02-29T11:30:00.500Z')
  const { devicesEndedAt, emailProvenAt, keepsFactor, permissionLostAt, verifiedByAdmin, ...user } =
    (await found('ada@example.com')) ?? {}
  assert.ok(emailProvenAt instanceof Date, 'the operator answers for the address')
  assert.deepEqual(
    [devicesEndedAt, keepsFactor, permissionLostAt, verifiedByAdmin],
    [null, false, null, false],
  )
  assert.deepEqual(user, {
    id,
    email: 'ada@example.com',
    name: 'Ada Lovelace',
    emailVerified: true,
    image: 'https://example.com/ada.png',
    username: 'ada_l',
    displayUsername: 'Ada_L',
    role: 'admin',
    twoFactorEnabled: false,
    isAnonymous: false,
    banned: false,
    banReason: null,
    banExpires: null,
    createdAt,
    updatedAt: createdAt,
    fields: null,
  })
  const answer = await t.anon.post('/api/auth/sign-in/username', { username: 'ada_l', password: PASSWORD })
  assert.equal(answer.status, 200)
  assert.equal(answer.body.user.id, id)
})

test('a line with only email and name makes a user without a password', async () => {
  await run([
    { id: 'from-elsewhere-17', email: 'bob@example.com', name: 'Bob', role: null, passwordHash: null },
  ])
  const bob = await found('bob@example.com')
  assert.match(bob?.id ?? '', /^[0-9a-f-]{14}7/, 'an id that is no UUID is replaced')
  assert.deepEqual([bob?.emailVerified, bob?.role, bob?.username], [false, 'user', null])
  const accounts = await db
    .selectFrom('account')
    .selectAll()
    .where('userId', '=', bob?.id ?? '')
    .execute()
  assert.deepEqual(accounts, [])
})

test('a ban is imported and holds', async () => {
  const passwordHash = await hashPassword(kernel, PASSWORD)
  const banExpires = new Date(Date.now() + 86_400_000).toISOString()
  await run([
    { email: 'eve@example.com', name: 'Eve', passwordHash, banned: true, banReason: 'spam', banExpires },
  ])
  const signIn = () =>
    t.anon.post('/api/auth/sign-in/email', { email: 'eve@example.com', password: PASSWORD })
  assert.equal((await signIn()).body.code, 'BANNED_USER')
  t.advance(86_500_000)
  assert.equal((await signIn()).status, 200)
})

test('a second run adds and changes no user', async () => {
  const lines = [
    { email: 'carol@example.com', name: 'Carol' },
    { email: 'dave@example.com', name: 'Dave' },
  ]
  assert.deepEqual(counts(await run(lines)), [2, 0, 0])
  const renamed = lines.map((line) => ({ ...line, name: 'Somebody else', role: 'admin' }))
  assert.deepEqual(counts(await run([...renamed, { email: 'frank@example.com', name: 'Frank' }])), [1, 2, 0])
  const carol = await found('carol@example.com')
  assert.deepEqual([carol?.name, carol?.role], ['Carol', 'user'])
})

test('every bad line is reported with its problem and without its hash, and the other lines are imported', async () => {
  const bad: [unknown, RegExp][] = [
    ['{"email":', /^is not valid JSON$/],
    ['[]', /^is no JSON object$/],
    ['"text"', /^is no JSON object$/],
    ['{"email":"a@b.example","name":"\\u0000"}', /^cannot be stored: Remove \\u0000/],
    [{ name: 'No email' }, /^email is missing$/],
    [{ email: 'g1@example.com' }, /^name is missing$/],
    [{ email: 'nobody', name: 'N' }, /^email "nobody" is not an address$/],
    [{ email: 17, name: 'N' }, /^email is not a text$/],
    [{ email: 'g2@example.com', name: 'N', username: 'a b' }, /^username "a b" is not/],
    [{ email: 'g3@example.com', name: 'N', role: 'root' }, /^role "root" is none of user, admin$/],
    [
      { email: 'g4@example.com', name: 'N', emailVerified: 'yes' },
      /^emailVerified is neither true nor false$/,
    ],
    [{ email: 'g5@example.com', name: 'N', createdAt: 'yesterday' }, /^createdAt "yesterday" is no date/],
    [{ email: 'g6@example.com', name: 'N', createdAt: '0000-00-00 00:00:00' }, /^createdAt .* is no date/],
    [
      { email: 'g7@example.com', name: 'N', passwordHash: 'plain text' },
      /^passwordHash is of no known form$/,
    ],
    [
      { email: 'g8@example.com', name: 'N', passwordHash: `$2b$31$${'C'.repeat(53)}` },
      /^passwordHash has parameters so high/,
    ],
    [
      { email: 'g9@example.com', name: 'x'.repeat(101) },
      /^name "x+…" is not one line of at most 100 characters/,
    ],
    [{ email: 'h1@example.com', name: 'Ada\nEve' }, /^name "Ada\\nEve" is not one line/],
    [
      { email: 'h2@example.com', name: 'N', image: 'javascript:alert(1)' },
      /^image "javascript:alert\(1\)" is no http/,
    ],
    [{ email: 'h3@example.com', name: 'N', username: 'zoë' }, /^username "zoë" is not/],
    [
      { email: 'h4@example.com', name: 'N', username: 'eve', displayUsername: 'Admin' },
      /^username "eve" is not/,
    ],
  ]
  const before = await users()
  const report = await run([
    ...bad.map(([line]) => line),
    { email: 'grace@example.com', name: 'Grace', username: 'grace' },
    { email: 'not-grace@example.com', name: 'Other', username: 'GRACE' },
  ])
  assert.deepEqual(counts(report), [1, 0, bad.length + 1])
  assert.equal(await users(), before + 1)
  for (const [index, [, says]] of bad.entries()) {
    const complaint = report.complaints[index] ?? ''
    assert.match(complaint.replace(`${index + 1}: `, ''), says)
    assert.ok(complaint.startsWith(`${index + 1}: `), complaint)
    assert.ok(!complaint.includes('plain text'))
  }
  assert.equal(
    report.complaints.at(-1),
    `${bad.length + 2}: the username belongs to a user with another email`,
  )
})

test('of two lines with one id the second is reported', async () => {
  const id = '0192f0a4-0000-7c3e-9d2f-1a2b3c4d5e6f'
  const report = await run([
    { id, email: 'heidi@example.com', name: 'Heidi' },
    { id, email: 'ivan@example.com', name: 'Ivan' },
  ])
  assert.deepEqual(counts(report), [1, 0, 1])
  assert.deepEqual(report.complaints, ['2: the id belongs to a user with another email'])
})

test('unknown members are reported once', async () => {
  const { ignored } = await run([{ email: 'judy@example.com', name: 'Judy', password: 'oops', nick: 'J' }])
  assert.deepEqual([...ignored], ['password', 'nick'])
})

test('a dry run reports the same and changes nothing', async () => {
  const lines = [
    { email: 'carol@example.com', name: 'Carol' },
    { email: 'kim@example.com', name: 'Kim' },
    { email: 'leo@example.com', name: 'Leo', username: 'grace' },
    { email: 'nobody', name: 'N' },
  ]
  const before = await users()
  const dry = await run(lines, true)
  assert.equal(await users(), before)
  assert.deepEqual(counts(dry), [1, 1, 2])
  assert.deepEqual(counts(await run(lines)), [1, 1, 2])
})

test('many batches are imported completely, each user with a password', async () => {
  const passwordHash = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
  const before = await users()
  const lines = Array.from({ length: 4_500 }, (_, index) => ({
    email: `u${index}@many.example`,
    name: 'U',
    passwordHash,
  }))
  assert.deepEqual(counts(await run(lines)), [4_500, 0, 0])
  assert.equal(await users(), before + 4_500)
  const accounts = await db.selectFrom('account').select('id').where('password', '=', passwordHash).execute()
  assert.equal(accounts.length, 4_500)
})

test('when the database goes away during an import, the import fails and says so', async () => {
  const doomed = await testKernel({ controlUrl: await controlDatabase() })
  async function* chunks() {
    yield Buffer.from(`${JSON.stringify({ email: 'a@example.com', name: 'A' })}\n`.repeat(1_500))
    await doomed.db.schema.dropTable('account').execute()
    yield Buffer.from(JSON.stringify({ email: 'b@example.com', name: 'B' }))
  }
  const options = { dryRun: false, onBadLine: () => {} }
  await assert.rejects(importUsers(doomed, linesOf(chunks()), options), /account/)
})

test('a hash that is too costly to check makes a bad line, and the message names the option that imports the user without it', async () => {
  const email = 'costly@example.com'
  const passwordHash =
    '$argon2id$v=19$m=1048576,t=4,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
  const lines = [
    { email: 'fine@example.com', name: 'Fine' },
    { email, name: 'Costly', passwordHash },
  ]
  const refused = await run(lines)
  assert.deepEqual(counts(refused), [1, 0, 1])
  assert.match(
    refused.complaints[0] ?? '',
    /^2: .*about 2 s and 1024 MiB; with --drop-costly-hashes .*reset mail$/,
  )
  assert.equal(await found(email), undefined)

  assert.deepEqual(counts(await run(lines, false, true)), [1, 1, 0])
  const user = await found(email)
  const accounts = await db
    .selectFrom('account')
    .select('id')
    .where('userId', '=', user?.id ?? '')
    .execute()
  assert.deepEqual(accounts, [])
  await t.anon.post('/api/auth/forget-password', { email })
  assert.match((await t.mails()).at(-1) ?? '', /^To: costly@example.com/m)
})
