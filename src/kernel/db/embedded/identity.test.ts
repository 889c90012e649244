import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { startAs, startEmbedded } from '#kernel/db/embedded.ts'
import {
  madeFolder,
  newFolder,
  optionsFor,
  postmasterOf,
  query,
  startInChild,
  templateFolder,
} from '#test/embedded.ts'
import { findIdentity, IN_NAMESPACE, serverAccount } from './identity.ts'

const made = await templateFolder(after)

const isRoot = process.getuid?.() === 0
const canUnshare = isRoot && (await findIdentity()) === IN_NAMESPACE
const account = isRoot ? serverAccount(await readFile('/etc/passwd', 'utf8')) : undefined

const IN_A_NAMESPACE = { skip: !canUnshare && 'needs root, and permission for `unshare --user`' }
const AS_ACCOUNT = { skip: !account && 'needs root, and a user postgres or nobody' }

test('a normal user runs the server directly', async (t) => {
  const dir = await newFolder(t)
  const { uid, wrap } = await normalUser(dir)
  const child = await startInChild(t, dir, { wrap })
  assert.deepEqual(await query(child.url, 'select 1 as one'), [{ one: 1 }])
  assert.equal((await stat(path.join(dir, 'data'))).uid, uid)
  assert.equal(await effectiveUser(await postmasterOf(dir)), uid)
})

test(
  'root runs it in a user namespace, without rights, also below a folder of mode 0700',
  IN_A_NAMESPACE,
  async (t) => {
    const closed = await newFolder(t)
    await mkdir(closed, { mode: 0o700 })
    const dir = path.join(closed, 'data', 'postgres')
    const server = await startEmbedded(optionsFor(dir))
    const status = await readFile(`/proc/${await postmasterOf(dir)}/status`, 'utf8')
    assert.match(status, /CapEff:\t0+\n/)
    assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
  },
)

test(
  'where root may not make a namespace, postgres or nobody runs it and owns the folder',
  AS_ACCOUNT,
  async (t) => {
    assert.ok(account)
    const dir = await reachable(await newFolder(t))
    const server = await startAs(account, optionsFor(dir))
    assert.equal(await effectiveUser(await postmasterOf(dir)), account.uid)
    assert.equal((await stat(dir)).uid, account.uid)
    assert.equal((await stat(dir)).mode & 0o777, 0o700)
    assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
  },
)

test(
  'a folder goes from the one way of root to the other and back with its data',
  IN_A_NAMESPACE,
  async (t) => {
    if (!account) return t.skip('there is no user postgres or nobody')
    const dir = await reachable(await madeFolder(t, made))
    for (const [round, identity] of [account, IN_NAMESPACE, account].entries()) {
      const server = await startAs(identity, optionsFor(dir))
      await query(
        server.superuserUrl,
        `create table if not exists rounds (); alter table rounds add r${round} int`,
      )
      await server.stop()
      assert.equal((await stat(path.join(dir, 'data', 'PG_VERSION'))).uid, identity.uid)
    }
  },
)

test('an account that cannot reach the folder is named in the error', AS_ACCOUNT, async (t) => {
  assert.ok(account)
  const closed = await newFolder(t)
  await mkdir(closed, { mode: 0o700 })
  const start = startAs(account, optionsFor(path.join(closed, 'postgres')))
  await assert.rejects(start, {
    message: new RegExp(`runs as ${account.who}, who must be able to reach ${closed}`),
  })
})

test('root without a namespace and without an account is told what to do', IN_A_NAMESPACE, async (t) => {
  const dir = await newFolder(t)
  const empty = path.join(path.dirname(dir), 'passwd')
  await writeFile(empty, '')
  // Inside a namespace of its own, where both can be taken away.
  const script =
    'mount --bind "$1" /etc/passwd && echo 0 > /proc/sys/user/max_user_namespaces && shift && exec "$@"'
  const wrap = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', script, 'sh', empty]
  await assert.rejects(startInChild(t, dir, { wrap }), /does not run as root.*DATABASE_URL/)
})

test('postgres comes before nobody, and an account that is root is none', () => {
  const line = (name: string, uid: number) => `${name}:x:${uid}:${uid + 1}::/:/bin/false\n`
  assert.equal(serverAccount(line('nobody', 65534) + line('postgres', 101))?.uid, 101)
  assert.equal(serverAccount(line('nobody', 65534))?.gid, 65535)
  assert.equal(serverAccount(line('root', 0) + line('postgres', 0)), undefined)
})

/** Ourselves; or where we are root, a user whose number nobody has. */
async function normalUser(dir: string): Promise<{ uid: number; wrap: string[] }> {
  if (!isRoot) return { uid: process.getuid?.() ?? -1, wrap: [] }
  const uid = account?.uid ?? 65534
  await chown(path.dirname(dir), uid, uid)
  return { uid, wrap: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'] }
}

/** The parent, made by us for us alone, opened for passing through. */
async function reachable(dir: string): Promise<string> {
  await chmod(path.dirname(dir), 0o711)
  return dir
}

async function effectiveUser(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'uid=', '-p', `${pid}`])
  return Number(stdout)
}
