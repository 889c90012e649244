import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { type Env, runProgram, startProgram } from './program.ts'

const template = await createTemporaryFolder()
after(() => removeFolder(template))
const first = await startProgram(template)
assert.equal(await first.end('SIGTERM'), 0)

/** A copy of a folder in which the service has run. */
async function copied(t: TestContext, folder?: string): Promise<string> {
  const copy = folder ?? (await createTemporaryFolder())
  if (folder === undefined) t.after(() => removeFolder(copy))
  // Sockets and links cannot be copied, and are not needed.
  const isFile = (source: string) => !path.basename(source).startsWith('.s.PGSQL')
  await cp(path.join(template, 'data'), path.join(copy, 'data'), { recursive: true, filter: isFile })
  return copy
}

/** Runs commands that must all fail with this message, and change none of these files. */
async function refused(folder: string, says: RegExp, env: Env = {}): Promise<void> {
  const before = await filesOf(folder)
  for (const command of [['serve'], ['config', 'check'], ['users', 'list']]) {
    const { code, stdout, stderr } = await runProgram(folder, command, env)
    assert.equal(code, 1, `${command}: ${stdout}`)
    assert.match(stderr, says, command.join(' '))
    assert.doesNotMatch(`${stdout}${stderr}`, /"event":"ready"|^\s+at /m)
  }
  assert.deepEqual(await filesOf(folder), before)
}

const filesOf = async (folder: string) =>
  (await readdir(path.join(folder, 'data'), { recursive: true }))
    .filter(
      (name) => !/^postgres\/(lock|server\.log(\.1)?|socket|data\/(pg_stat|postmaster|log).*)$/.test(name),
    )
    .sort()

test('an emptied database folder is refused with two ways on, and a new installation begins when the files are gone', async (t) => {
  const folder = await copied(t)
  const postgres = path.join(folder, 'data/postgres')
  await rm(postgres, { recursive: true })
  await mkdir(postgres)
  await refused(
    folder,
    /^The database of this installation is missing: there is no \/.*\/data\/postgres\/data\/PG_VERSION, and \/.*\/data has postgres-password, default-key, secret, admin-key\. Restore a backup \(gatehouse restore FILE\), .*DATABASE_URL\. For a new, empty installation move these files away\.$/m,
  )
  await rename(path.join(folder, 'data/postgres-password'), path.join(folder, 'elsewhere'))
  await refused(folder, /, and \/.*\/data has default-key, secret, admin-key\. Restore a backup/)
  await rm(path.join(folder, 'data/default-key'))
  const program = await startProgram(folder)
  t.after(() => program.end('SIGKILL'))
  assert.equal(await program.end('SIGTERM'), 0)
})

test('a first start that is stopped while it creates the database can be started again', async (t) => {
  const folder = await createTemporaryFolder()
  t.after(() => removeFolder(folder))
  await mkdir(path.join(folder, 'data/postgres/init-1'), { recursive: true })
  for (const name of ['secret', 'admin-key', 'postgres-password.new'])
    await writeFile(path.join(folder, 'data', name), `${name}-${'x'.repeat(40)}\n`)
  const program = await startProgram(folder)
  t.after(() => program.end('SIGKILL'))
  assert.equal(await program.end('SIGTERM'), 0)
  assert.ok(existsSync(path.join(folder, 'data/postgres-password')))
  assert.ok(!existsSync(path.join(folder, 'data/postgres-password.new')))
})

test('a database without PG_VERSION or without its password is refused', async (t) => {
  const folder = await copied(t)
  const version = path.join(folder, 'data/postgres/data/PG_VERSION')
  await rename(version, path.join(folder, 'PG_VERSION'))
  await refused(
    folder,
    /^The database of this installation is missing: there is no \/.*\/PG_VERSION, .*postgres\/data, /m,
  )
  await rename(path.join(folder, 'PG_VERSION'), version)
  await rename(path.join(folder, 'data/postgres-password'), path.join(folder, 'password'))
  await refused(folder, /postgres-password is missing, the password of the database in \/.*: copy it back/)
})

test('a damaged control file is named, with the way on', async (t) => {
  const folder = await copied(t)
  await truncate(path.join(folder, 'data/postgres/data/global/pg_control'), 100)
  await refused(
    folder,
    /^Embedded PostgreSQL in \/.*: it ended at once\. The database is damaged, .*: restore a backup with gatehouse restore --replace FILE\.\n[\s\S]*pg_control/m,
  )
})

test('doctor tries the default key', async (t) => {
  const folder = await copied(t)
  const file = path.join(folder, 'data/default-key')
  const right = (await readFile(file, 'utf8')).trim()
  const finding = async () => {
    const { stdout, stderr } = await runProgram(folder, ['doctor', '--json'])
    const findings: { subject: string }[] = JSON.parse(stdout || stderr)
    return findings.find(({ subject }) => subject === 'default key')
  }
  const said = { subject: 'default key' }
  assert.deepEqual(await finding(), {
    ...said,
    ok: true,
    says: './data/default-key has a key of this database',
  })
  const turned = (text: string, at: number) =>
    `${text.slice(0, at)}${text[at] === 'a' ? 'b' : 'a'}${text.slice(at + 1)}`
  for (const [key, says] of [
    [turned(right, 6), 'has a key that this database does not know: it belongs to another one'],
    [turned(right, right.length - 3), 'has a key whose secret has been rotated'],
    ['nothing', 'has no API key'],
  ]) {
    await writeFile(file, `${key}\n`)
    assert.deepEqual(await finding(), {
      ...said,
      ok: false,
      says: `./data/default-key ${says}. Remove the file, and the next start issues another key.`,
    })
  }
})

const isRoot = process.getuid?.() === 0

test('a full disk is named at the start', {
  skip: !isRoot && 'needs root, for a small disk',
}, async (t) => {
  const folder = await createTemporaryFolder()
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'none', folder])
  t.after(async () => {
    spawnSync('umount', [folder])
    await removeFolder(folder)
  })
  if (mounted.status !== 0) return t.skip('this root may not mount')
  await copied(t, folder)
  // dd writes until nothing fits any more.
  spawnSync('dd', ['if=/dev/zero', `of=${folder}/filler`, 'bs=4096'])
  const { code, stderr } = await runProgram(folder, ['serve'])
  assert.equal(code, 1)
  assert.match(stderr, /disk is full: free space/)
  await rm(path.join(folder, 'filler'))
  const program = await startProgram(folder)
  // The disk can be removed when nothing uses it.
  assert.equal(await program.end('SIGTERM'), 0)
})

test('files of another user are named, with both users', {
  skip: !isRoot && 'needs root, for files of another user',
}, async (t) => {
  const folder = await copied(t)
  spawnSync('chown', ['-R', '65534', folder])
  const asNobody = async (command: readonly string[]) => {
    const wrap = ['--reuid=65534', '--regid=65534', '--clear-groups']
    return spawnSync('setpriv', [...wrap, process.execPath, path.resolve('bin/gatehouse.mjs'), ...command], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, SERVICE_SERVER__PORT: '0' },
    })
  }
  for (const name of ['postgres', 'secret']) {
    const place = path.join(folder, 'data', name)
    await chmod(place, name === 'secret' ? 0o600 : 0o700)
    spawnSync('chown', ['-R', '0', place])
    for (const command of [['serve'], ['config', 'check']]) {
      const { status, stderr } = await asNobody(command)
      assert.equal(status, 1)
      assert.match(
        stderr,
        new RegExp(
          `^${place} belongs to user id 0, and user id 65534 may not use it \\(EACCES\\): run this as user id 0, or give`,
          'm',
        ),
      )
      assert.doesNotMatch(stderr, /is missing/)
    }
    spawnSync('chown', ['-R', '65534', place])
  }
})
