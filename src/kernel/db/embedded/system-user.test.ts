import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { startEmbedded } from '#kernel/db/embedded.ts'
import {
  madeFolder,
  newFolder,
  optionsFor,
  postmasterOf,
  query,
  startInChild,
  templateFolder,
} from '#test/embedded.ts'
import { findSystemUser, usersForRoot } from './system-user.ts'

const isRoot = process.getuid?.() === 0
const canUnshare = isRoot && (await findSystemUser(['/'])).wrap[0] === 'unshare'
const [, account] = isRoot ? usersForRoot(await readFile('/etc/passwd', 'utf8')) : []

const IN_A_NAMESPACE = { skip: !canUnshare && 'needs root, and permission for `unshare --user`' }
const IN_A_CONTAINER = {
  skip: !(canUnshare && account) && 'needs root, `unshare --user`, and postgres or nobody',
}

const made = await templateFolder(after)

test('a normal user runs the server directly', async (t) => {
  const dir = await newFolder(t)
  const { uid, wrap } = await normalUser(dir)
  const child = await startInChild(t, dir, { wrap })
  assert.deepEqual(await query(child.url, 'select 1 as one'), [{ one: 1 }])
  assert.equal((await stat(path.join(dir, 'data'))).uid, uid)
  assert.match(await statusOf(dir), new RegExp(`^Uid:\t${uid}\t${uid}\t`, 'm'))
})

test(
  'root runs it in a namespace, without capabilities, also below a folder of mode 0700',
  IN_A_NAMESPACE,
  async (t) => {
    const dir = await newFolder(t, 'closed/data/postgres')
    await mkdir(path.resolve(dir, '../..'), { mode: 0o700 })
    const server = await startEmbedded(optionsFor(dir))
    assert.match(await statusOf(dir), /^CapEff:\t0+$/m)
    assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
  },
)

test(
  'where root may make no namespace, postgres or nobody gets the folder and runs it',
  IN_A_CONTAINER,
  async (t) => {
    const dir = await newFolder(t)
    await chmod(path.dirname(dir), 0o711)
    const child = await startInChild(t, dir, { wrap: container() })
    assert.match(await statusOf(dir), new RegExp(`^Uid:\t${account?.uid}\t`, 'm'))
    assert.match(await statusOf(dir), /^CapEff:\t0+$/m)
    assert.equal((await stat(dir)).uid, account?.uid)
    assert.equal((await stat(dir)).mode & 0o777, 0o700)
    assert.deepEqual(await query(child.url, 'select 1 as one'), [{ one: 1 }])
  },
)

test(
  'it does below a folder of mode 0700 too, with the one capability for that',
  IN_A_CONTAINER,
  async (t) => {
    const dir = await newFolder(t, 'closed/data/postgres')
    await mkdir(path.resolve(dir, '../..'), { mode: 0o700 })
    const child = await startInChild(t, dir, { wrap: container() })
    assert.match(await statusOf(dir), new RegExp(`^Uid:\t${account?.uid}\t`, 'm'))
    assert.match(await statusOf(dir), /^CapEff:\t0000000000000002$/m)
    assert.deepEqual(await query(child.url, 'select 1 as one'), [{ one: 1 }])
  },
)

test('with the capability, the server also ends when its parent is killed', IN_A_CONTAINER, async (t) => {
  const dir = await madeFolder(t, made)
  const child = await startInChild(t, dir, { wrap: container() })
  child.kill('SIGKILL')
  const server = await startEmbedded(optionsFor(dir))
  assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
})

test(
  'a folder goes from the one way of root to the other and back, with its data',
  IN_A_CONTAINER,
  async (t) => {
    const dir = await madeFolder(t, made)
    for (const round of [1, 2, 3]) {
      const wrap = round === 2 ? container() : []
      const child = await startInChild(t, dir, { wrap })
      await query(child.url, `create table if not exists rounds (); alter table rounds add r${round} int`)
      assert.equal((await stat(path.join(dir, 'data/PG_VERSION'))).uid, round === 2 ? account?.uid : 0)
      await child.stop()
    }
  },
)

test('the error for root without any of these users gives advice', IN_A_CONTAINER, async (t) => {
  const dir = await newFolder(t)
  const empty = path.join(path.dirname(dir), 'passwd')
  await writeFile(empty, '')
  const bind = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/passwd && exec "$@"', empty]
  const start = startInChild(t, dir, { wrap: [...container(), ...bind] })
  await assert.rejects(start, /does not run as root.*DATABASE_URL/)
})

test('the account postgres comes before nobody, and an account with root’s id is not used', () => {
  const line = (name: string, uid: number) => `${name}:x:${uid}:${uid + 1}::/:/bin/false\n`
  const spawnAs = (passwd: string) => usersForRoot(passwd)[1]?.spawnAs
  assert.equal(spawnAs(line('nobody', 65534) + line('postgres', 101))?.uid, 101)
  assert.equal(spawnAs(line('nobody', 65534))?.gid, 65535)
  assert.equal(spawnAs(line('root', 0) + line('postgres', 0)), undefined)
})

/** This user, or another one if this user is root. */
async function normalUser(dir: string): Promise<{ uid: number; wrap: string[] }> {
  if (!isRoot) return { uid: process.getuid?.() ?? -1, wrap: [] }
  const uid = account?.uid ?? 65534
  await chown(path.dirname(dir), uid, uid)
  return { uid, wrap: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'] }
}

/**
 * Root as in a container: with every user, but not permitted to make a user namespace. That takes a user namespace,
 * whose users are ours one to one, in which the limit of further ones is 0.
 */
function container(): string[] {
  const inside = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
  const outside = `
    exec 4<&0
    mkfifo "$0"
    unshare --user sh -c 'read -r go < "$0"; exec sh -c "$@" <&4' "$0" '${inside}' sh "$@" &
    while [ "$(readlink /proc/$!/ns/user)" = "$(readlink /proc/self/ns/user)" ]; do sleep 0.01; done
    echo 0 0 65536 > /proc/$!/uid_map
    echo 0 0 65536 > /proc/$!/gid_map
    echo go > "$0"
    rm "$0"
    trap : TERM
    wait $! || wait $!`
  return ['sh', '-c', outside, `/tmp/gatehouse-go-${randomUUID()}`]
}

/** The system's facts about the server's process. */
async function statusOf(dir: string): Promise<string> {
  return readFile(`/proc/${await postmasterOf(dir)}/status`, 'utf8')
}
