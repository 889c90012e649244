import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const root = path.resolve(import.meta.dirname, '../..')

/** The README's shell blocks, in order: the first starts the service, the last is `npm test`. */
async function blocks(): Promise<string[]> {
  const readme = await readFile(path.join(root, 'README.md'), 'utf8')
  return [...readme.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = '']) => block)
}

/** A folder that looks like a fresh clone with everything installed: no data, and the tree by links. */
async function clone(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-readme-'))
  for (const name of await readdir(root)) {
    if (name !== 'data' && name !== '.git') await symlink(path.join(root, name), path.join(folder, name))
  }
  // Every curl of the README fails when the answer is a failure.
  await writeFile(path.join(folder, '.curlrc'), 'fail-with-body\nshow-error\n')
  return folder
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    server.close()
    return true
  } catch {
    return false
  }
}

async function has(program: string): Promise<boolean> {
  return promisify(execFile)(program, ['--version']).then(
    () => true,
    () => false,
  )
}

test('the README, executed as it stands, does what it says', { timeout: 120_000 }, async (t) => {
  if (!(await has('curl')) || !(await has('bash'))) return t.skip('needs curl and bash')
  if (!(await isFree(8080))) return t.skip('port 8080 is in use on this machine')
  const [start = '', ...rest] = await blocks()
  assert.equal(start.trim(), 'npm start')
  assert.equal(rest.pop()?.trim(), 'npm test')

  const folder = await clone()
  const env = { ...process.env, CURL_HOME: folder }
  const service = spawn('sh', ['-c', start], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    // A process group of its own, so that it can be stopped as Ctrl-C at a terminal does.
    detached: true,
  })
  try {
    let printed = ''
    service.stdout.on('data', (chunk) => {
      printed += chunk
    })
    while (!printed.includes('ready')) {
      assert.equal(service.exitCode, null, `the service ended:\n${printed}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const script = ['set -euo pipefail', ...rest].join('\n')
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder, env, maxBuffer: 1e8 })

    assert.match(stdout, /"email":"ada@example.com"/)
    assert.match(stdout, /"pages":3168}.*"pages":66}.*"count":2/)
    assert.match(stdout, /Notes on the Analytical Engine/)
    assert.match(stdout, /"author":"Anonymous".*"affected_rows":1/)
    assert.match(stdout, /171\d{3} cities are there/)
    assert.match(stdout, /"success":true/)
    const key = (await readFile(path.join(folder, 'data/default-key'), 'utf8')).trim()
    assert.ok(!printed.includes(key), 'the key is shown on a terminal only')
  } finally {
    const ended = once(service.stdout, 'close')
    process.kill(-(service.pid ?? 0), 'SIGINT')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
})
