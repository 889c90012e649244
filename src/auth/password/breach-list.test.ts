import assert from 'node:assert/strict'
import { createHash, hash } from 'node:crypto'
import { copyFile, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { linkIn, PASSWORD, testService, type User } from '#test/harness.ts'
import { runHere } from '#test/journeys/command.ts'
import { codeIn } from '#test/mailed-codes.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { expectBreachList, isInList, RECORDS_AT } from './breach-list.ts'
import { breachListProblems } from './breached-passwords.ts'
import { buildBreachList } from './build-breach-list.ts'

const folder = await createTemporaryFolder()
after(() => removeFolder(folder))

const sha1 = (password: string): string => hash('sha1', password).toUpperCase()

/** Passwords that no one has chosen, the same at each run. */
const passwords = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, number) => `leaked password ${from + number}`)

async function* inPieces(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

let files = 0
async function build(text: string, { size = 65_536, signal = new AbortController().signal } = {}) {
  const out = path.join(folder, `list-${++files}`)
  const built = await buildBreachList(inPieces(text, size), { out, signal })
  return { out, ...built }
}

test('a list has each password of the source, and no other', async () => {
  const known = passwords(0, 20_000)
  const { out, hashes, bytes } = await build(known.map((password) => `${sha1(password)}:7\r\n`).join(''))
  assert.equal(hashes, 20_000)
  assert.equal(bytes, RECORDS_AT + 20_000 * 4)
  await expectBreachList(out)
  for (const password of known.slice(0, 2_000)) assert.ok(await isInList(out, password), password)
  for (const password of passwords(20_000, 22_000)) assert.ok(!(await isInList(out, password)), password)
})

test('the first and the last hash of all are found', async () => {
  for (const edge of ['0', 'F']) {
    const { out } = await build(`${edge.repeat(40)}\n`)
    await expectBreachList(out)
    assert.equal((await readFile(out)).subarray(RECORDS_AT).toString('hex').toUpperCase(), edge.repeat(8))
  }
  const { out, hashes } = await build('')
  assert.equal(hashes, 0)
  await expectBreachList(out)
  assert.ok(!(await isInList(out, PASSWORD)))
})

test('order, repetition, counts, cases of letters and pieces make no difference', async () => {
  const lines = passwords(0, 3_000).map(sha1)
  const plain = await build(lines.toSorted().join('\n'))
  const others = [
    await build(`${lines.map((line) => `${line}:1`).join('\r\n')}\r\n`, { size: 1_000 }),
    await build([...lines, ...lines].map((line) => line.toLowerCase()).join('\n'), { size: 7 }),
    await build(`\n\n${lines.toReversed().join('\n\n')}`, { size: 41 }),
  ]
  const expected = await readFile(plain.out)
  for (const { out, hashes } of others) {
    assert.equal(hashes, 3_000)
    assert.ok(expected.equals(await readFile(out)))
  }
})

test('a count of 0 is padding', async () => {
  const { out, hashes } = await build(`${sha1('one')}:0\n${sha1('two')}:10\n${sha1('three')}:000\n`)
  assert.equal(hashes, 1)
  assert.deepEqual([await isInList(out, 'one'), await isInList(out, 'two')], [false, true])
})

test('a line that is no hash is refused with its number, and leaves no file', async () => {
  const good = sha1('good')
  for (const bad of [
    'x',
    good.slice(1),
    `${good}0`,
    `${good}:`,
    `${good}:1:1`,
    `${good}:x`,
    `${good};1`,
    'G'.repeat(40),
  ])
    await assert.rejects(build(`${good}:1\n${bad}\n`), /^BreachListError: line 2 is not SHA1:COUNT/, bad)
  const aborted = AbortSignal.abort()
  await assert.rejects(build(good, { signal: aborted }), { name: 'AbortError' })
  assert.ok(!(await readdir(folder)).some((name) => name.includes('parts')))
})

test('a file that is missing, foreign, cut or damaged stops the start with its reason', async () => {
  const { out } = await build(passwords(0, 100).map(sha1).join('\n'))
  const problemOf = async (file: string): Promise<string> => {
    const config = defaultConfig({ auth: { email_password: { breach_check_file: file } } })
    return (await breachListProblems(config)).join('\n')
  }
  const changed = async (name: string, change: (file: string) => Promise<unknown>): Promise<string> => {
    const file = path.join(folder, name)
    await copyFile(out, file)
    await change(file)
    return file
  }
  assert.equal(await problemOf(out), '')
  assert.match(
    await problemOf(path.join(folder, 'nowhere')),
    /breach_check_file: .*nowhere cannot be read: ENOENT\. Make it/,
  )
  assert.match(await problemOf(folder), /EISDIR/)
  const env = { SERVICE_AUTH__EMAIL_PASSWORD__BREACH_CHECK_FILE: 'nowhere' }
  const checked = await runHere(folder, ['serve'], env)
  assert.equal(checked.code, 1)
  assert.match(checked.stderr, /breach_check_file: nowhere cannot be read: ENOENT/)
  assert.match(
    await problemOf(await changed('text', (file) => writeFile(file, `${sha1('a')}:1\n`))),
    /is no list of/,
  )
  assert.match(await problemOf(await changed('empty', (file) => truncate(file))), /ends too early/)
  assert.match(
    await problemOf(await changed('cut', (file) => truncate(file, RECORDS_AT + 396))),
    /is not complete/,
  )
  const flipped = await changed('flipped', async (file) => {
    const bytes = await readFile(file)
    bytes.writeUInt8(bytes.readUInt8(5_000) ^ 1, 5_000)
    await writeFile(file, bytes)
  })
  assert.match(await problemOf(flipped), /another checksum/)
})

const listed = path.join(folder, 'listed')
await buildBreachList(inPieces(sha1('correct horse leaked'), 64), {
  out: listed,
  signal: new AbortController().signal,
})
const email_password = { breach_check_file: listed, breach_check_on_failure: 'closed' as const }
const t = await testService({ config: { auth: { email_password, email_otp: { enabled: true } } } })
const leaked = 'correct horse leaked'

test('a listed password is refused wherever one is chosen', async () => {
  const ada: User = await t.signUp('Ada')
  const root = await t.signUp('Root')
  await t.service.kernel.db.updateTable('user').set({ role: 'admin' }).where('id', '=', root.id).execute()
  await t.mails()
  await t.anon.post('/api/auth/forget-password', { email: ada.email })
  const [mail = ''] = await t.mails()
  const chosen: [actor: Pick<User, 'post'>, path: string, body: object][] = [
    [t.anon, 'sign-up/email', { name: 'Bob', email: 'bob@example.com', password: leaked }],
    [ada, 'change-password', { currentPassword: PASSWORD, newPassword: leaked }],
    [t.anon, 'reset-password', { token: linkIn(mail).split('/').at(-1), newPassword: leaked }],
    [t.anon, 'email-otp/reset-password', { email: ada.email, otp: codeIn(mail), password: leaked }],
    [root, 'admin/create-user', { name: 'Bob', email: 'bob@example.com', password: leaked }],
    [root, 'admin/set-user-password', { userId: ada.id, newPassword: leaked }],
  ]
  for (const [actor, path, body] of chosen) {
    const { status, body: said } = await actor.post(`/api/auth/${path}`, body)
    assert.deepEqual([status, said.code], [400, 'PASSWORD_COMPROMISED'], path)
  }
})

test('a replaced list is used at once, and a lost one fails as breach_check_on_failure says', async () => {
  const signUp = async (password: string) => {
    const email = `${createHash('md5').update(`${password}${files++}`).digest('hex')}@example.com`
    const { status, body } = await t.anon.post('/api/auth/sign-up/email', { name: 'Eve', email, password })
    return [status, body.code]
  }
  assert.deepEqual(await signUp('another password'), [200, undefined])
  const { out } = await build(sha1('another password'))
  await rename(out, listed)
  assert.deepEqual(await signUp('another password'), [400, 'PASSWORD_COMPROMISED'])
  assert.deepEqual(await signUp(leaked), [200, undefined])
  await rm(listed)
  assert.deepEqual(await signUp('a third password'), [503, 'BREACH_CHECK_UNAVAILABLE'])
  assert.ok(t.log.some((line) => line.includes('breach_check_failed') && line.includes('ENOENT')))
})

test('the command makes the list of a file and of standard input', async () => {
  const source = path.join(folder, 'source.txt')
  await writeFile(
    source,
    passwords(0, 50)
      .map((password) => `${sha1(password)}:2\r\n`)
      .join(''),
  )
  const built = await runHere(folder, ['breach-list', 'build', 'source.txt', '--out', 'made'])
  assert.equal(built.code, 0)
  assert.match(built.stdout, /^made: 50 passwords, 0\.3 MiB in .* s\nIt also has one in 5629499534213 of /)
  assert.ok(await isInList(path.join(folder, 'made'), 'leaked password 49'))
  const piped = await runHere(folder, ['breach-list', 'build', '-', '--out', 'made'], {}, sha1('piped'))
  assert.equal(piped.code, 0)
  assert.deepEqual(
    [
      await isInList(path.join(folder, 'made'), 'piped'),
      await isInList(path.join(folder, 'made'), 'leaked password 49'),
    ],
    [true, false],
  )
})
