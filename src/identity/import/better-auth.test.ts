import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import pg from 'pg'
import { linesOf } from '#kernel/lines.ts'
import { testDatabase } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { importUsers } from './import.ts'

/** The user tables of better-auth 1.7 on PostgreSQL, with hashes of its version 1.7.7. */
const BETTER_AUTH = `
  create table "user" (
    id text primary key, name text not null, email text not null unique, "emailVerified" boolean not null, image text,
    "createdAt" timestamptz not null default current_timestamp, "updatedAt" timestamptz not null default current_timestamp,
    username text unique, "displayUsername" text, role text, banned boolean, "banReason" text, "banExpires" timestamptz
  );
  create table account (
    id text primary key, "accountId" text not null, "providerId" text not null, "userId" text not null references "user",
    password text, "createdAt" timestamptz not null default current_timestamp, "updatedAt" timestamptz not null
  );
  insert into "user" values
    ('Zk1x8n0aQm2bT5vY7cLw3dRf9eHg4jKp', E'Ada "\\\\" Lovelace\\n', 'ada@example.com', true, null,
     '2024-05-06 07:08:09.123456+00', now(), 'ada', 'Ada', 'admin', null, null, null),
    ('0b1f6f1e-58cc-4372-a567-0e02b2c3d479', 'Bob', 'bob@example.com', false, 'https://example.com/bob.png',
     '2025-01-02 03:04:05+02', now(), null, null, null, false, null, null);
  insert into account values
    ('a1', 'Zk1x8n0aQm2bT5vY7cLw3dRf9eHg4jKp', 'credential', 'Zk1x8n0aQm2bT5vY7cLw3dRf9eHg4jKp',
     '51623cf4d62e83446481556062712177:ccb9a59e370ce858ef229de3b5575b2bda1c2660986867ef38865479d63915a415035526f3235092e95453460771fb95cddde432969d6df024f3a425c88012fe',
     now(), now()),
    ('a2', '1234567', 'github', '0b1f6f1e-58cc-4372-a567-0e02b2c3d479', null, now(), now());`

test('the export of docs/guides/better-auth.md is imported, and its users sign in', async () => {
  const page = await readFile(new URL('../../../docs/guides/better-auth.md', import.meta.url), 'utf8')
  const [, statement = ''] = /```sql\n(.*?)```/s.exec(page) ?? []
  const client = new pg.Client({ connectionString: (await testDatabase()).url })
  await client.connect()
  await client.query(BETTER_AUTH)
  const { rows } = await client.query<string[]>({ text: statement, rowMode: 'array', types: asText })
  await client.end()

  const t = await testService()
  const complaints: string[] = []
  async function* chunks() {
    yield Buffer.from(rows.map(([json]) => `${json}\n`).join(''))
  }
  const report = await importUsers(t.service.kernel, linesOf(chunks()), {
    dryRun: false,
    onBadLine: (number, why) => complaints.push(`${number}: ${why}`),
  })
  assert.deepEqual([report.added, [...report.ignored], complaints], [2, [], []])

  const answer = await t.anon.post('/api/auth/sign-in/username', {
    username: 'ada',
    password: 'correct horse battery',
  })
  assert.equal(answer.status, 200)
  assert.equal(answer.body.user.createdAt, '2024-05-06T07:08:09.123Z')
  assert.equal(answer.body.user.name, 'Ada "\\" Lovelace', 'one line, as every name')
  const bob = await t.service.kernel.db
    .selectFrom('user')
    .selectAll()
    .where('email', '=', 'bob@example.com')
    .executeTakeFirst()
  assert.deepEqual(
    [bob?.id, bob?.image, bob?.role],
    ['0b1f6f1e-58cc-4372-a567-0e02b2c3d479', 'https://example.com/bob.png', 'user'],
  )
})

/** The output of psql. */
const asText = { getTypeParser: () => String }
