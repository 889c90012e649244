import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { testDatabase, testServerUrl, withClient } from '#test/database.ts'
import { TEST_SECRET, testService } from '#test/harness.ts'
import { createTemporaryHome, type Env, runProgram, startProgram } from './program.ts'

const t = await testService()
const home = await createTemporaryHome()
after(() => home.remove())
const { folder } = home
await mkdir(path.join(folder, 'data'))
await writeFile(path.join(folder, 'file'), '')
const FOUND = { DATABASE_URL: t.controlUrl, SERVICE_SECRET: TEST_SECRET }

type Finding = { readonly subject: string; readonly ok: boolean; readonly says: string }

/** The findings by subject: `ok` or the problem. */
async function doctor(env: Env): Promise<ReadonlyMap<string, string>> {
  const { code, stdout, stderr } = await runProgram(folder, ['doctor', '--json'], { ...FOUND, ...env })
  assert.deepEqual([code, stderr], [1, ''])
  assert.doesNotMatch(stdout, /hidden/)
  const findings: readonly Finding[] = JSON.parse(stdout)
  return new Map(findings.map(({ subject, ok, says }) => [subject, ok ? 'ok' : says]))
}

/** Of a service that goes on without them, and of clients. */
const STOPPED: readonly (readonly [subject: string, env: Env, says: RegExp])[] = [
  [
    'mail',
    {
      SERVICE_MAIL__TRANSPORT: 'smtp',
      SERVICE_MAIL__FROM: 'auth@example.com',
      SERVICE_MAIL__SMTP_URL: 'smtp://ada:hidden@127.0.0.1:1',
    },
    /^mail\.smtp_url: 127\.0\.0\.1:1 does not answer as a mail server does \(ECONNREFUSED\): start it, or check host/,
  ],
  [
    'disk',
    { SERVICE_SERVER__MIN_FREE_DISK: '1048576GiB' },
    /^The disk of server\.data_dir is full: free space, or lower server\.min_free_disk$/,
  ],
  [
    'backups',
    { SERVICE_BACKUPS__LOCATION: path.join(folder, 'file/backups') },
    /^Backups cannot be written to \/.*\/file\/backups \(ENOTDIR\): give the folder to the user of the service, or name another/,
  ],
  [
    'client shop',
    { SERVICE_CLIENTS__SHOP__URL: 'postgres://shop:hidden@127.0.0.1:1/shop' },
    /^clients\.shop\.url: nothing listens at 127\.0\.0\.1:1: start the server, or check host and port$/,
  ],
  [
    'client project',
    {
      SERVICE_CLIENTS__PROJECT__DRIVER: 'supabase',
      SERVICE_CLIENTS__PROJECT__URL: 'http://:hidden@127.0.0.1:1',
    },
    /^clients\.project\.url: nothing listens at 127\.0\.0\.1:1/,
  ],
]

test('doctor names what stops work, with address, cause and what to do; and the start warns of it', async () => {
  const env = Object.assign({}, ...STOPPED.map(([, env]) => env)) as Env // all of their variables
  const healthy = await doctor({})
  const found = await doctor(env)
  for (const [subject, , says] of STOPPED) {
    assert.match(found.get(subject) ?? '', says)
    assert.equal(healthy.get(subject) ?? 'ok', 'ok')
  }
  const program = await startProgram(folder, { ...FOUND, ...env })
  const warned = ['mail', 'disk', 'backups'].map((subject) => JSON.stringify(found.get(subject)))
  while (!warned.every((says) => program.output().includes(`"event":"advice","msg":${says}`)))
    await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(await program.end('SIGTERM'), 0)
})

/** The rights of a role that only reads the control database. */
const OBJECTS = [
  `connect on database "${new URL(t.controlUrl).pathname.slice(1)}"`,
  'usage on schema service, service_jobs',
  'select on all tables in schema service, service_jobs',
]

test('a control role that cannot write is refused by doctor, config check and the start', async () => {
  const reader = `reader_${randomBytes(4).toString('hex')}`
  const onServer = (text: string) => withClient(testServerUrl(), (client) => client.query(text))
  await onServer(`create role ${reader} login password 'hidden'`)
  const inControl = (change: (object: string) => string) =>
    withClient(t.controlUrl, (client) => client.query(OBJECTS.map(change).join(';')))
  await inControl((object) => `grant ${object} to ${reader}`)
  const readerUrl = Object.assign(new URL(t.controlUrl), { username: reader, password: 'hidden' }).href
  const readOnlyUrl = `${t.controlUrl}?options=-c%20default_transaction_read_only%3Don`
  for (const [url, says, atTheStart] of [
    [
      readerUrl,
      /^The role of database\.url .* may not write to service\.\w+, .*: name the owner/,
      /lacks a right|may not write/,
    ],
    [
      readOnlyUrl,
      /^Sessions in .* are read-only: take default_transaction_read_only/,
      /takes no writes of role/,
    ],
  ] as const) {
    const env = { ...FOUND, DATABASE_URL: url }
    assert.match((await doctor(env)).get('control role') ?? '', says)
    for (const [command, expected] of [
      [['config', 'check'], says],
      [['serve'], atTheStart],
    ] as const) {
      const { code, stdout, stderr } = await runProgram(folder, command, env)
      assert.deepEqual([code, expected.test(stderr)], [1, true], stderr)
      assert.doesNotMatch(stdout, /"event":"ready"/)
    }
  }
  await inControl((object) => `revoke ${object} from ${reader}`)
  await onServer(`drop role ${reader}`)
})

test('doctor says that there is no installation, and changes nothing', async () => {
  const empty = await testDatabase()
  const found = await doctor({ DATABASE_URL: empty.url })
  assert.match(
    found.get('database') ?? '',
    /^There is no installation in .* yet: run gatehouse serve, or gatehouse migrate/,
  )
  const left = await withClient(empty.url, (client) =>
    client.query(`select from pg_namespace where nspname ~ '^service'`),
  )
  assert.equal(left.rowCount, 0)
  await empty.drop()
})
