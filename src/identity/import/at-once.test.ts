import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linesOf } from '#kernel/lines.ts'
import { withClient } from '#test/database.ts'
import { controlDatabase, testKernel, testService } from '#test/harness.ts'
import { emptyReport, importUsers } from './import.ts'

const controlUrl = await controlDatabase()
const t = await testService({ controlUrl })
const { kernel } = t.service
const other = await testKernel({ controlUrl })

type Fields = Readonly<Record<string, unknown>>

/** Texts are lines as they are. */
async function run(on: typeof kernel, lines: readonly (Fields | string)[]) {
  const complaints: string[] = []
  async function* chunks() {
    yield Buffer.from(
      lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
    )
  }
  const onBadLine = (number: number, why: string) => complaints.push(`${number}: ${why}`)
  return { ...(await importUsers(on, linesOf(chunks()), { dryRun: false, onBadLine })), complaints }
}

const found = (email: string) =>
  kernel.db.selectFrom('user').selectAll().where('email', '=', email).executeTakeFirst()

test('two concurrent imports of the same users in opposite orders both finish, and each user is added once', async () => {
  const lines = Array.from({ length: 4_000 }, (_, index) => ({
    email: `u${index}@at-once.example`,
    name: 'U',
    username: `at_once_${index}`,
  }))
  const reports = await Promise.all([run(kernel, lines), run(other, lines.toReversed())])
  assert.equal(reports[0].added + reports[1].added, lines.length)
  assert.equal(reports[0].alreadyThere + reports[1].alreadyThere, lines.length)
  assert.deepEqual(
    reports.flatMap(({ complaints }) => complaints),
    [],
  )
})

test('of lines that share an email or a username the first one is imported, in any order of the database', async () => {
  const { added, alreadyThere, complaints } = await run(kernel, [
    { email: 'zoe@first.example', name: 'Z', username: 'taken' },
    { email: 'amy@first.example', name: 'A', username: 'TAKEN' },
    { email: 'bob@first.example', name: 'First' },
    { email: ' BOB@first.example', name: 'Second' },
  ])
  assert.deepEqual([added, alreadyThere], [2, 1])
  assert.deepEqual(complaints, ['2: the username belongs to a user with another email'])
  assert.equal((await found('bob@first.example'))?.name, 'First')
})

test('a batch that the database aborts as a deadlock is tried again; another failure is reported, with the users added before', async () => {
  await withClient(controlUrl, (client) =>
    client.query(`
    create sequence service.tries;
    create function service.stumble() returns trigger language plpgsql as $$ begin
      if new.name = 'Deadlocked' and nextval('service.tries') < 3 then raise exception 'no' using errcode = '40P01'; end if;
      if new.name = 'Poison' then raise exception 'poison'; end if;
      return new; end $$;
    create trigger stumble before insert on service."user" for each row execute function service.stumble()`),
  )
  assert.equal((await run(kernel, [{ email: 'dead@lock.example', name: 'Deadlocked' }])).added, 1)

  const report = emptyReport()
  async function* chunks() {
    for (let index = 0; index < 1_500; index++)
      yield Buffer.from(
        `${JSON.stringify({ email: `p${index}@poison.example`, name: index === 1_200 ? 'Poison' : 'P' })}\n`,
      )
  }
  const options = { dryRun: false, onBadLine: () => {}, report }
  await assert.rejects(importUsers(kernel, linesOf(chunks()), options), /poison/)
  assert.equal(report.added, 1_000)
})

/** Members of a line or of a sign-up, as JSON text after `{"email":…,`. */
const MEMBERS: readonly string[] = [
  '"name":""', '"name":" "', '"name":"  Ada  "', '"name":"Zoe\\u0308"', '"name":"a\\nb"', '"name":"a\\tb"', '"name":"\\u202eab"', '"name":"a\\u200bb"',
  '"name":"علی\\u200cرضا"', '"name":"\\u001b[2J"', `"name":"${'x'.repeat(100)}"`, `"name":"${'x'.repeat(101)}"`, `"name":"${'𠮷'.repeat(100)}"`,
  `"name":" ${'x'.repeat(100)}"`, `"name":"${'e\\u0301'.repeat(80)}"`, `"name":"${'👩\\u200d💻'.repeat(60)}"`, '"name":null', '"name":17', '"name":["Ada"]', '"name":{"a":1}',
  '"name":"A","image":null', '"name":"A","image":""', '"name":"A","image":"https://example.com/a.png"', '"name":"A","image":"HTTP://EXAMPLE.com/a b"',
  '"name":"A","image":" https://example.com/a"', '"name":"A","image":"https://example.com/a\\n"', '"name":"A","image":"https://u:p@example.com/"',
  '"name":"A","image":"data:image/png;base64,AA"', '"name":"A","image":"javascript:alert(1)"', '"name":"A","image":"//example.com/a"', '"name":"A","image":"https://"',
  `"name":"A","image":"https://example.com/${'a'.repeat(2_028)}"`, `"name":"A","image":"https://example.com/${'a'.repeat(2_029)}"`,
  `"name":"A","image":"https://example.com/${'ä'.repeat(700)}"`, '"name":"A","image":17', '"name":"A","image":"https://exa mple.com/"',
  '"name":"First","name":"Second"', '"name":"Second","\\u006eame":"Third"', '"name":"A\\u0000"', '"name":"\\ud800"', '"name":"A","__proto__":{"image":"x"}',
  '"name":"A","image":"https://example.com/1","image":"https://example.com/2"', '"name":"A","image":"https://example.com/1","image":null',
] // biome-ignore format: a table

test('names, images and duplicate members are accepted, refused and stored as at sign-up', async () => {
  const rows = await Promise.all(
    MEMBERS.map(async (members, index) => {
      const asked = `sign-up-${index}@rules.example`
      const raw = `{"email":"${asked}","password":"correct horse battery",${members}}`
      const { status, text } = await t.anon.send('POST', '/api/auth/sign-up/email', { raw })
      assert.ok(status === 200 || status === 400, text)
      const signedUp = await found(asked)
      const email = `import-${index}@rules.example`
      const { added, bad } = await run(kernel, [`{"email":"${email}",${members}}`])
      assert.equal(added + bad, 1)
      const imported = await found(email)
      const shown = (user: typeof imported) => (user === undefined ? 'refused' : [user.name, user.image])
      return { members, signedUp: shown(signedUp), imported: shown(imported) }
    }),
  )
  assert.deepEqual(
    rows.map(({ members, imported }) => [members, imported]),
    rows.map(({ members, signedUp }) => [members, signedUp]),
  )
  assert.ok(
    rows.some(({ imported }) => imported === 'refused') &&
      rows.some(({ imported }) => imported !== 'refused'),
  )
})

test('a day that does not exist is a bad line', async () => {
  const dates = [
    '2023-02-29',
    '2024-02-30T10:00:00Z',
    '2024-04-31 00:00:00',
    '2024-01-01T24:30:00Z',
    '1899-12-31',
  ]
  const lines = dates.map((createdAt, index) => ({ email: `d${index}@dates.example`, name: 'D', createdAt }))
  const bans = dates.map((banExpires, index) => ({
    email: `b${index}@dates.example`,
    name: 'D',
    banned: true,
    banExpires,
  }))
  const { added, bad, complaints } = await run(kernel, [...lines, ...bans])
  assert.deepEqual([added, bad], [0, 2 * dates.length])
  for (const complaint of complaints)
    assert.match(complaint, /^\d+: (createdAt|banExpires) ".*" is no date like /)
})
