import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { madeFolder, newFolder, optionsFor, PASSWORD, query, templateFolder } from '#test/embedded.ts'

const made = await templateFolder(after)

test('a server starts on a new folder that other users cannot open, and keeps its data', async (t) => {
  const dir = await newFolder(t)
  const steps: string[] = []
  const first = await startEmbedded(optionsFor(dir, { report: (step) => steps.push(step) }))
  assert.equal(first.version, '18.4')
  await query(first.superuserUrl, `create table kept as select 'yes' as word`)
  await first.stop()
  const second = await startEmbedded(optionsFor(dir, { report: (step) => steps.push(step) }))
  assert.deepEqual(await query(second.superuserUrl, 'table kept'), [{ word: 'yes' }])
  assert.deepEqual(steps, ['initdb', 'start', 'start'])
  assert.equal((await stat(dir)).mode & 0o777, 0o700)
  assert.equal((await stat(path.join(dir, 'server.log'))).mode & 0o777, 0o600)
})

test('a new cluster has UTF-8, data checksums, password authentication and no port', async (t) => {
  const server = await startEmbedded(optionsFor(await newFolder(t)))
  const [facts] = await query(
    server.superuserUrl,
    `select pg_encoding_to_char(encoding) as encoding, datlocprovider as provider, datlocale as locale,
            current_setting('data_checksums') as checksums, current_setting('listen_addresses') as addresses,
            current_setting('TimeZone') as zone, upper('straße ä') as upper,
            (select string_agg(distinct auth_method, ' ') from pg_hba_file_rules) as methods,
            (select starts_with(rolpassword, 'SCRAM-SHA-256$') from pg_authid where rolname = 'postgres') as hashed
       from pg_database where datname = 'template0'`,
  )
  assert.deepEqual(facts, {
    encoding: 'UTF8',
    provider: 'b',
    locale: 'C.UTF-8',
    checksums: 'on',
    addresses: '',
    zone: 'UTC',
    upper: 'STRASSE Ä'.replace('SS', 'ß'),
    methods: 'scram-sha-256',
    hashed: true,
  })
  await assert.rejects(query(server.url('postgres', 'wrong', 'postgres'), 'select 1'), { code: '28P01' })
})

test('a URL may contain any role name and password', async (t) => {
  const server = await startEmbedded(optionsFor(await madeFolder(t, made)))
  await query(server.superuserUrl, `create role "a/b@c:?" login password 'p%/@:#?'`)
  await query(server.superuserUrl, `create database "d ü%"`)
  const url = server.url('a/b@c:?', 'p%/@:#?', 'd ü%')
  assert.deepEqual(await query(url, 'select current_user as me, current_database() as here'), [
    { me: 'a/b@c:?', here: 'd ü%' },
  ])
  assert.equal(new URL(url).protocol, 'postgres:')
})

test('a folder may have any name that a path can have', async (t) => {
  const odd = await newFolder(t, `it's "a", $(touch x); \`id\` & ü %41 \\ -c x=y`)
  const server = await startEmbedded(optionsFor(odd))
  assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
})

test('a folder name with a line break is refused', async (t) => {
  const dir = await newFolder(t, 'a\nb')
  await assert.rejects(startEmbedded(optionsFor(dir)), /control character/)
})

test('if the path is too long for a socket, the socket is in a private temporary folder until the stop', async (t) => {
  const dir = await newFolder(t, 'long'.repeat(30))
  const server = await startEmbedded(optionsFor(dir))
  const socket = socketFolder(server)
  assert.notEqual(socket, dir)
  assert.equal((await stat(socket)).mode & 0o777, 0o700)
  assert.deepEqual(await query(server.superuserUrl, 'select 1 as one'), [{ one: 1 }])
  await server.stop()
  await assert.rejects(stat(socket), { code: 'ENOENT' })
})

test('settings override ours, and the error of a failed start contains its log', async (t) => {
  const dir = await madeFolder(t, made)
  const server = await startEmbedded(optionsFor(dir, { settings: { work_mem: '7MB' } }))
  assert.deepEqual(await query(server.superuserUrl, 'show work_mem'), [{ work_mem: '7MB' }])
  await server.stop()
  await assert.rejects(
    startEmbedded(optionsFor(dir, { settings: { work_mem: 'plenty' } })),
    (error: Error) => {
      assert.match(error.message, /invalid value for parameter "work_mem": "plenty"/)
      assert.match(error.message, /DATABASE_URL/)
      return error.name === 'EmbeddedServerError' && error.message.includes(dir)
    },
  )
})

test('a password other than the folder’s is an error, and the server stops', async (t) => {
  const dir = await madeFolder(t, made)
  await (await startEmbedded(optionsFor(dir))).stop()
  await assert.rejects(startEmbedded(optionsFor(dir, { password: 'another' })), (error: Error) => {
    assert.match(error.message, /another superuser password/)
    return !error.message.includes(PASSWORD) && error.message.includes(dir)
  })
  await (await startEmbedded(optionsFor(dir))).stop()
})

test('the log contains neither the password nor statements of clients, and only the last two runs are kept', async (t) => {
  const dir = await madeFolder(t, made)
  for (let run = 0; run < 3; run++) {
    const server = await startEmbedded(optionsFor(dir))
    await assert.rejects(query(server.superuserUrl, `select 'private'::int`))
    await server.stop()
  }
  const log = await readFile(path.join(dir, 'server.log'), 'utf8')
  assert.match(log, /database system is shut down/)
  assert.doesNotMatch(log, /private/)
  assert.equal(log.match(/ready to accept connections/g)?.length, 1)
  await stat(path.join(dir, 'server.log.1'))
  await assert.rejects(stat(path.join(dir, 'server.log.1.1')))
})

for (const step of ['initdb', 'start']) {
  test(`a start given up during ${step} leaves no process and no incomplete folder`, async (t) => {
    const dir = step === 'initdb' ? await newFolder(t) : await madeFolder(t, made)
    const giveUp = new AbortController()
    const report = (now: string) => now === step && setTimeout(() => giveUp.abort(new Error('enough')), 10)
    await assert.rejects(startEmbedded(optionsFor(dir, { report, signal: giveUp.signal })), /enough/)
    await assert.rejects(stat(path.join(dir, 'data/postmaster.pid')), { code: 'ENOENT' })
    const server = await startEmbedded(optionsFor(dir))
    await server.stop()
  })
}

function socketFolder(server: EmbeddedServer): string {
  return decodeURIComponent(new URL(server.superuserUrl).hostname)
}
