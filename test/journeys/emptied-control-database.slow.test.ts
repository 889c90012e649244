import assert from 'node:assert/strict'
import { readdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { dropInstallations, testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { runProgram, startProgram } from './program.ts'

const names: string[] = []
const folder = await createTemporaryFolder()
after(async () => {
  await dropInstallations(...names)
  await removeFolder(folder)
})

/** An empty control database on the server of the test run. */
async function emptyDatabase(): Promise<string> {
  const { name } = await testDatabase()
  names.push(name)
  return Object.assign(new URL(testServerUrl()), { pathname: `/${name}` }).href
}

const filesOf = async () => (await readdir(path.join(folder, 'data'), { recursive: true })).sort()
const isEmpty = (url: string) =>
  withClient(url, async (client) => {
    const { rows } = await client.query(`select to_regnamespace('service') is null as empty`)
    return rows[0].empty
  })

test('an empty control database on a server takes the place of no lost one, and a new installation begins when the files are gone', async (t) => {
  const [own, empty] = [await emptyDatabase(), await emptyDatabase()]
  const start = async (url: string) => {
    const program = await startProgram(folder, { DATABASE_URL: url })
    t.after(() => program.end('SIGKILL'))
    assert.equal(await program.end('SIGTERM'), 0)
  }
  await start(own)
  const files = await filesOf()
  const refused = async (says: RegExp) => {
    for (const command of [['serve'], ['migrate'], ['doctor'], ['config', 'check'], ['users', 'list']]) {
      const { stdout, stderr } = await runProgram(folder, command, { DATABASE_URL: empty })
      assert.match(`${stdout}${stderr}`, says, command.join(' '))
      assert.doesNotMatch(`${stdout}${stderr}`, /"event":"ready"|^\s+at /m)
    }
    assert.ok(await isEmpty(empty))
    assert.deepEqual(await filesOf(), files)
  }
  await refused(
    /The control database \S+ \(DATABASE_URL\) has no installation, and \/.*\/data has default-key, secret, admin-key, which an installation with another database has written\. Restore .*, or name the right one in DATABASE_URL .*For a new, empty installation move these files away\.$/m,
  )
  await start(own)

  await rm(path.join(folder, 'data/admin-key'))
  files.splice(files.indexOf('admin-key'), 1)
  await refused(/ has default-key, secret, which /)
  for (const name of ['default-key', 'secret']) await rm(path.join(folder, 'data', name))
  await start(empty)
  assert.ok(!(await isEmpty(empty)))
})
