import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { withClient } from '#test/database.ts'
import { PASSWORD, TEST_SECRET, testService } from '#test/harness.ts'
import { ceremoniesOf } from '#test/passkeys.ts'
import { proveAddress } from '#test/proven-address.ts'
import { enrolTotp } from '#test/second-factor.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { createCommandRunner } from './command.ts'
import { spawnCommand } from './program.ts'

const t = await testService()
const { kernel } = t.service
const { db } = kernel
const passkeys = ceremoniesOf(t)
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-users-'))
after(() => removeFolder(folder))

/** The commands run next to the service, on the same control database. */
const ENV = {
  DATABASE_URL: t.controlUrl,
  SERVICE_SECRET: TEST_SECRET,
  SERVICE_AUTH__PASSWORD__MEMORY: '1024',
  SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
}
const run = createCommandRunner(folder, ENV, 'users')

/** Starts an import from standard input, which stays open. */
function startImport() {
  const child = spawnCommand(folder, ['users', 'import', '-'], ENV)
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk) => {
      printed[name] += chunk
    })
  const ended = once(child, 'close').then(() => ({ code: child.exitCode, ...printed }))
  return { child, ended }
}

const signIn = (email: string, password: string) =>
  t.anon.post('/api/auth/sign-in/email', { email, password })
const line = (index: number) =>
  `${JSON.stringify({ email: `i${index}@example.com`, name: `User ${index}` })}\n`
const count = async () => (await db.selectFrom('user').select('id').execute()).length

test('create prints a generated password once, with which the first admin can sign in', async () => {
  const { code, stdout } = await run([
    'create',
    '--email',
    'Root@Example.com',
    '--name',
    'Root',
    '--role',
    'admin',
  ])
  assert.equal(code, 0)
  const [, password = ''] = /^password: (\S{20}) /m.exec(stdout) ?? []
  const answer = await signIn('root@example.com', password)
  assert.equal(answer.status, 200)
  assert.equal(answer.body.user.emailVerified, true)

  const again = await run(['create', '--email', 'root@example.com', '--name', 'Root'])
  assert.deepEqual([again.code, again.stdout], [1, ''])
  assert.match(again.stderr, /^There is an account with root@example.com already\.\n$/)
})

test('create takes fields of the configuration, and list --json prints them all', async () => {
  const env = { ...ENV, SERVICE_AUTH__USER__FIELDS: FIELDS }
  const withFields = createCommandRunner(folder, env, 'users')
  const create = ['create', '--email', 'fay@example.com', '--name', 'Fay']
  const without = await withFields(create)
  assert.deepEqual([without.code, without.stderr], [2, 'company is required (--field NAME=VALUE).\n'])
  const given = ['company=A=B', 'tags=a, b', 'note=secret'].flatMap((field) => ['--field', field])
  const unknown = await withFields([...create, '--field', 'plan=pro'])
  assert.match(unknown.stderr, /^--field plan=pro names no field of auth\.user\.fields\.\n$/)
  assert.equal((await withFields([...create, ...given])).code, 0)
  const { stdout } = await withFields(['list', '--search', 'fay@', '--json'])
  assert.partialDeepStrictEqual(JSON.parse(stdout), [{ company: 'A=B', tags: ['a', 'b'], note: 'secret' }])
})

const FIELDS = JSON.stringify({
  company: { required: true },
  tags: { type: 'string[]' },
  note: { input: false, returned: false },
})

test('--password-stdin reads the password, and the password policy applies', async () => {
  const create = ['create', '--email', 'ada@example.com', '--name', 'Ada', '--password-stdin']
  const short = await run(create, 'short\n')
  assert.deepEqual([short.code, short.stderr], [1, 'The password needs at least 8 characters\n'])
  const { code, stdout } = await run(create, `${PASSWORD}\n`)
  assert.equal(code, 0)
  assert.ok(!stdout.includes('password'))
  assert.equal((await signIn('ada@example.com', PASSWORD)).status, 200)
})

test('wrong usage exits with 2, an unknown user with 1', async () => {
  const [role, missing, unknown, name] = await Promise.all([
    run(['create', '--email', 'a@example.com', '--name', 'A', '--role', 'root']),
    run(['create', '--email', 'a@example.com']),
    run(['ban', 'nobody@example.com']),
    run(['create', '--email', 'b@example.com', '--name', 'Ada\u001b[31m\nEve']),
  ])
  assert.deepEqual([name.code, name.stdout], [2, ''])
  assert.match(name.stderr, /^--name must be one line of at most 100 characters/)
  assert.deepEqual([role.code, missing.code, unknown.code], [2, 2, 1])
  assert.equal(unknown.stderr, 'There is no user nobody@example.com.\n')
})

test('ban, unban, set-role and list work on a running service', async () => {
  const bob = await t.signUp('Bob')
  assert.equal((await bob.get('/api/auth/get-session')).status, 200)
  assert.equal((await run(['ban', bob.email, '--reason', 'spam'])).code, 0)
  assert.equal((await bob.get('/api/auth/get-session')).status, 401)
  assert.equal((await signIn(bob.email, PASSWORD)).body.code, 'BANNED_USER')
  assert.equal((await run(['set-role', bob.id, 'admin'])).code, 0)

  const listed = await run(['list', '--search', bob.email.toUpperCase(), '--json'])
  const [found, ...others] = JSON.parse(listed.stdout)
  assert.deepEqual(others, [])
  assert.deepEqual([found.id, found.role, found.banned], [bob.id, 'admin', true])
  assert.deepEqual(JSON.parse((await run(['list', '--search', '%', '--json'])).stdout), [])

  assert.equal((await run(['unban', bob.email])).code, 0)
  assert.equal((await signIn(bob.email, PASSWORD)).status, 200)
})

test('reset-factors removes what a user has lost and ends every session, and mails a notice', async () => {
  const { user, authenticator } = await passkeys.newUser('Dora')
  const dora = await enrolTotp(t, await proveAddress(t, user))
  const pending = await signIn(dora.email, PASSWORD)
  const { token, code: taken } = { token: pending.body.token, code: dora.backupCodes[0] }
  const trusting = { token, code: taken, trustDevice: true }
  const trusted = await t.anon.post('/api/auth/two-factor/verify-backup-code', trusting)
  assert.equal(trusted.status, 200, trusted.text)
  const open = await signIn(dora.email, PASSWORD)
  const { body: options } = await passkeys.requestOptions(t.anon)
  await t.mails()
  const { code, stdout } = await run(['reset-factors', dora.email])
  const says = `${dora.email} has no second factor and no passkey, and is signed out everywhere\n`
  assert.deepEqual([code, stdout], [0, says])
  const [notice = '', ...others] = await t.mails()
  assert.match(notice, /security of your account was changed/)
  assert.deepEqual(others, [])

  const body = { code: dora.backupCodes[1], token: open.body.token }
  const answers = [
    await t.anon.post('/api/auth/two-factor/verify-backup-code', body),
    await dora.get('/api/auth/get-session'),
    await passkeys.verify('authentication', t.anon, {
      ...{ response: authenticator.get(options, kernel.publicUrl()), challengeId: options.challengeId },
    }),
  ]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [401, 401, 401],
  )
  const left = await Promise.all(
    (['twoFactor', 'passkey', 'trustedDevice', 'session', 'verification'] as const).map((table) =>
      db.selectFrom(table).select('userId').where('userId', '=', dora.id).execute(),
    ),
  )
  assert.deepEqual(left.flat(), [])
  assert.equal((await signIn(dora.email, PASSWORD)).body.user.twoFactorEnabled, false)
})

test('reset-factors of a user without any changes nothing, also by its former name', async () => {
  const eve = await proveAddress(t, await t.signUp('Eve'))
  await t.mails()
  for (const name of ['reset-factors', 'disable-two-factor']) {
    const { code, stderr } = await run([name, eve.email])
    assert.deepEqual([code, stderr], [1, `${eve.email} has neither a second factor nor a passkey.\n`])
  }
  assert.equal((await eve.get('/api/auth/get-session')).status, 200)
  assert.deepEqual(await t.mails(), [])
})

test('reset-password and delete work on a running service, but not on the last admin', async () => {
  const carol = await t.signUp('Carol')
  const { code, stdout } = await run(['reset-password', carol.email])
  assert.equal(code, 0)
  const [, password = ''] = /^password: (\S{20}) /m.exec(stdout) ?? []
  assert.equal((await carol.get('/api/auth/get-session')).status, 401)
  assert.equal((await signIn(carol.email, PASSWORD)).status, 401)
  assert.equal((await signIn(carol.email, password)).status, 200)
  const given = await run(['reset-password', carol.id, '--password-stdin'], `${PASSWORD}\n`)
  assert.deepEqual([given.code, given.stdout.includes('password:')], [0, false])
  assert.equal((await signIn(carol.email, PASSWORD)).status, 200)
  assert.equal((await run(['reset-password', carol.id, '--password-stdin'], 'short\n')).code, 1)

  assert.equal((await run(['delete', carol.email])).stdout, `${carol.email} is deleted, id ${carol.id}\n`)
  assert.equal((await signIn(carol.email, PASSWORD)).status, 401)
  assert.equal((await run(['delete', carol.email])).code, 1)
  const admins = await db.selectFrom('user').select('email').where('role', '=', 'admin').execute()
  const outcomes = []
  for (const { email } of admins) outcomes.push(await run(['delete', email]))
  assert.match(outcomes.at(-1)?.stderr ?? '', /^The last admin cannot be removed\n$/)
})

test('list escapes control characters in names; JSON has the original name', async () => {
  const eve = await t.signUp('Eve')
  const name = 'Eve\u001b]0;owned\u0007\u202e\nroot  admin'
  // Inserted directly, like a name from before the name rules existed.
  await db.updateTable('user').set({ name }).where('id', '=', eve.id).execute()
  const { stdout } = await run(['list', '--search', eve.email])
  const isRaw = (text: string) => ['\u001b', '\u0007', '\u202e'].some((character) => text.includes(character))
  assert.ok(!isRaw(stdout))
  assert.equal(stdout.trimEnd().split('\n').length, 2)
  assert.ok(stdout.includes('Eve\\u001b]0;owned\\u0007\\u202e\\nroot  admin'), stdout)
  const json = (await run(['list', '--search', eve.email, '--json'])).stdout
  assert.ok(!isRaw(json))
  assert.equal(JSON.parse(json)[0].name, name)
})

test('import adds the users of a file, reports invalid lines on stderr and exits with 1', async () => {
  const file = path.join(folder, 'users.jsonl')
  await writeFile(file, `${line(1)}${line(2)}{"email":"nobody","name":"N"}\n${line(2)}`)
  const before = await count()
  const dry = await run(['import', file, '--dry-run'])
  assert.match(dry.stdout, /^3 to add, 0 existing, 1 invalid line in /)
  assert.equal(await count(), before)
  const { code, stdout, stderr } = await run(['import', file])
  assert.equal(code, 1)
  assert.match(stdout, /^2 added, 1 existing, 1 invalid line in \d+\.\d s\n$/)
  assert.equal(stderr, 'line 3: email "nobody" is not an address\n')
  assert.equal(await count(), before + 2)
  assert.equal((await run(['import', path.join(folder, 'absent.jsonl')])).code, 1)
})

test('a failed or interrupted import reports how many users it has added', async () => {
  await withClient(t.controlUrl, (client) =>
    client.query(`
    create function service.poison() returns trigger language plpgsql as $$
      begin if new.email = 'i51500@example.com' then raise exception 'no'; end if; return new; end $$;
    create trigger poison before insert on service."user" for each row execute function service.poison()`),
  )
  const lines = Array.from({ length: 2_000 }, (_, index) => line(50_000 + index))
  const failed = await run(['import', '-'], lines.join(''))
  assert.equal(failed.code, 1)
  assert.match(failed.stdout, /^1000 added, 0 existing, 0 invalid lines in /)
  assert.match(failed.stderr, /^no$/m)

  const before = await count()
  const { child, ended } = startImport()
  child.stdin.write(Array.from({ length: 1_100 }, (_, index) => line(60_000 + index)).join(''))
  while ((await count()) < before + 1_000) await new Promise((resolve) => setTimeout(resolve, 20))
  child.kill('SIGINT')
  const interrupted = await ended
  assert.equal(interrupted.code, 1)
  assert.match(interrupted.stdout, /^1000 added, 0 existing, 0 invalid lines in /)
  assert.match(interrupted.stderr, /^Interrupted; run it again to add the remaining users\.$/m)
})

test('a killed import leaves no partial users, and the next run continues', async () => {
  const lines = Array.from({ length: 6_000 }, (_, index) => line(10_000 + index))
  const before = await count()
  const { child, ended } = startImport()
  child.stdin.write(lines.slice(0, 3_500).join(''))
  while ((await count()) < before + 2_000) await new Promise((resolve) => setTimeout(resolve, 20))
  child.kill('SIGKILL')
  await ended
  const left = (await count()) - before
  assert.ok(left >= 2_000 && left < 6_000 && left % 1_000 === 0, `${left}`)

  const { code, stdout } = await run(['import', '-'], lines.join(''))
  assert.equal(code, 0)
  assert.match(stdout, new RegExp(`^${6_000 - left} added, ${left} existing, 0 invalid lines`))
  assert.equal(await count(), before + 6_000)
})
