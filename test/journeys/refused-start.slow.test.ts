import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { newFolder } from '#test/embedded.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { runProgram } from './program.ts'

const t = await testService()
const taken = createServer().listen(0, '127.0.0.1')
await once(taken, 'listening')
after(() => taken.close())
const address = taken.address()
const port = typeof address === 'object' ? String(address?.port) : ''

async function emptyFolder(t: TestContext): Promise<string> {
  const folder = await newFolder(t)
  await mkdir(folder)
  await writeFile(path.join(folder, 'file'), '')
  return folder
}

type Env = Record<string, string>
const PRODUCTION: Env = {
  NODE_ENV: 'production',
  SERVICE_SECRET: TEST_SECRET,
  SERVICE_KEY_12: 'k'.repeat(40),
}

const REFUSED: readonly (readonly [what: string, env: Env, says: readonly RegExp[]])[] = [
  [
    'a port in use',
    { SERVICE_SERVER__PORT: port },
    [new RegExp(`^server.port: ${port} is in use on 127.0.0.1\\. .* SERVICE_SERVER__PORT or --port\\.$`)],
  ],
  [
    'a host of another machine, in production without secrets',
    { SERVICE_SERVER__HOST: '192.0.2.1', SERVICE_SERVER__PORT: '8080', NODE_ENV: 'production' },
    [
      /^SERVICE_SECRET is missing: set /,
      /^SERVICE_KEY_12 is missing: set /,
      /^server.host: 192\.0\.2\.1 is not an address of this machine\.$/,
    ],
  ],
  [
    'a data folder that cannot be created',
    { SERVICE_SERVER__DATA_DIR: './file/data' },
    [
      /^server.data_dir: user id \d+ cannot write to \/.*\/file\/data \(ENOTDIR\)\. Give the folder to that user/,
    ],
  ],
  [
    'a database address without a server',
    { DATABASE_URL: 'postgres://ada:hidden@localhost:1/shop' },
    [/^database.url \(DATABASE_URL\): nothing listens at localhost:1: start the server/],
  ],
]

for (const [what, env, says] of REFUSED) {
  test(`${what}: the start names the setting and creates nothing; config check reports the same`, async (t) => {
    const folder = await emptyFolder(t)
    const [start, check] = [
      await runProgram(folder, ['serve'], env),
      await runProgram(folder, ['config', 'check'], env),
    ]
    for (const { code, stdout, stderr } of [start, check]) {
      assert.deepEqual([code, stdout], [1, ''], stderr)
      const lines = stderr.trimEnd().split('\n')
      assert.equal(lines.length, says.length, stderr)
      for (const [index, pattern] of says.entries()) assert.match(lines[index] ?? '', pattern)
      assert.doesNotMatch(stderr, /hidden/)
    }
    assert.equal(existsSync(path.join(folder, 'data/postgres')), false)
  })
}

test('config check creates nothing, and accepts the port of the running service', async (context) => {
  const folder = await emptyFolder(context)
  const env = { ...PRODUCTION, DATABASE_URL: t.controlUrl, SERVICE_SERVER__PORT: new URL(t.url).port }
  const check = await runProgram(folder, ['config', 'check'], env)
  assert.deepEqual(check, { code: 0, stdout: 'The configuration is valid.\n', stderr: '' })
  const foreign = await runProgram(folder, ['config', 'check'], { ...env, SERVICE_SECRET: 's'.repeat(40) })
  assert.equal(foreign.code, 1)
  assert.match(foreign.stderr, /^The control database .* belongs to an installation with another secret/)
  const wrong = { ...env, DATABASE_URL: 'postgres://ada@localhost:1/shop', SERVICE_SERVER__PORT: port }
  assert.equal((await runProgram(folder, ['config', 'check', '--offline'], wrong)).code, 0)
  assert.equal(existsSync(path.join(folder, 'data')), false)
})

test('doctor reports registered clients that are unreachable or have an unreadable URL, and schedules without a client', async (context) => {
  const url = 'postgres://shop:hidden@localhost:1/shop'
  for (const client_name of ['reachless', 'sealed'])
    await t.admin.post('/admin/clients', { client_name, url })
  await t.service.kernel.db
    .updateTable('databaseClient')
    .set({ sealedUrl: 'v1.x.x' })
    .where('clientName', '=', 'sealed')
    .execute()
  const env = {
    ...PRODUCTION,
    DATABASE_URL: t.controlUrl,
    SERVICE_BACKUPS__SCHEDULES: '{"nightly":{"client":"reachless"},"weekly":{"client":"reachles"}}',
  }
  const { code, stdout } = await runProgram(await emptyFolder(context), ['doctor', '--json'], env)
  assert.equal(code, 1)
  assert.doesNotMatch(stdout, /hidden/)
  const findings = new Map(
    JSON.parse(stdout).map(({ subject, ok, says }: Record<string, unknown>) => [subject, `${ok} ${says}`]),
  )
  assert.match(String(findings.get('client reachless')), /^false ./)
  assert.match(String(findings.get('client sealed')), /^false its address cannot be read here/)
  assert.equal(findings.get('backup schedule nightly'), 'true backs up client reachless')
  assert.match(
    String(findings.get('backup schedule weekly')),
    /^false there is no client reachles\. Existing clients: .*reachless/,
  )
})

test('the options --port and --data-dir take precedence over the environment', async (t) => {
  const folder = await emptyFolder(t)
  const shown = await runProgram(folder, ['config', 'show', '--json', '--data-dir', 'elsewhere'], {})
  assert.equal(JSON.parse(shown.stdout).server.data_dir, 'elsewhere')
  const { code, stderr } = await runProgram(folder, ['serve', '--port', port, '--data-dir', 'file/data'], {})
  assert.equal(code, 1)
  assert.match(
    stderr,
    new RegExp(`^server.data_dir: .* cannot write to .*/file/data .*\nserver.port: ${port} is in use`),
  )
  const wrong = await runProgram(folder, ['serve', '--port', 'http'], {})
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /'--port <port>' argument 'http' is invalid/)
})
