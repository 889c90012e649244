import assert from 'node:assert/strict'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, test } from 'node:test'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { createNameLookups, type Resolve } from './name-lookups.ts'

const folder = await createTemporaryFolder()
after(() => removeFolder(folder))
const hostsFile = path.join(folder, 'hosts')
await writeFile(
  hostsFile,
  '127.0.0.1 localhost\n# 192.0.2.9 named.example\n192.0.2.7\tother Named.Example # ours\n::7 named.example\n',
)

const TYPES: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' }

/** A name server on a port of its own. `answer` gives the bytes of addresses, or undefined for a name that does not exist; 'silent' never answers. */
async function startNameServer(
  answer: (type: string) => readonly (readonly number[])[] | undefined | 'silent',
) {
  const socket = createSocket('udp4')
  after(() => socket.close())
  let asked = 0
  socket.on('message', (query: Buffer, { port, address }: RemoteInfo) => {
    asked++
    const end = query.indexOf(0, 12) + 5
    const type = query.readUInt16BE(end - 4)
    const found = answer(TYPES[type] ?? '')
    if (found === 'silent') return
    const header = Buffer.concat([
      query.subarray(0, 2),
      Buffer.from([0x81, found === undefined ? 0x83 : 0x80, 0, 1, 0, found?.length ?? 0, 0, 0, 0, 0]),
    ])
    const records = (found ?? []).map((bytes) =>
      Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, bytes.length, ...bytes]),
    )
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  return { servers: [`127.0.0.1:${socket.address().port}`], asked: () => asked }
}

const found = (resolve: Resolve, name: string, family?: 4 | 6) =>
  new Promise<readonly string[]>((done, fail) =>
    resolve(name, { all: true, ...(family && { family }) }, (error, all) =>
      error === null ? done(all.map((one) => `${one.family} ${one.address}`)) : fail(error),
    ),
  )

const never: Resolve = () => assert.fail('the system was asked')

test('a name of the hosts file is found without a question', async () => {
  const { servers, asked } = await startNameServer(() => 'silent')
  const resolve = createNameLookups({ hostsFile, servers, system: never })
  assert.deepEqual(await found(resolve, 'named.EXAMPLE.'), ['4 192.0.2.7', '6 ::7'])
  assert.deepEqual(await found(resolve, 'named.example', 6), ['6 ::7'])
  assert.equal(asked(), 0)
})

test('other names are found by the name servers, in both families', async () => {
  const { servers } = await startNameServer((type) =>
    type === 'A'
      ? [
          [192, 0, 2, 1],
          [192, 0, 2, 2],
        ]
      : [[32, 1, ...Array<number>(13).fill(0), 5]],
  )
  const resolve = createNameLookups({ hostsFile, servers, system: never })
  assert.deepEqual(await found(resolve, 'public.example'), ['4 192.0.2.1', '4 192.0.2.2', '6 2001::5'])
  assert.deepEqual(await found(resolve, 'public.example', 4), ['4 192.0.2.1', '4 192.0.2.2'])
})

test('a name whose server is silent never goes to the system, which would keep a thread for it', async () => {
  const { servers, asked } = await startNameServer(() => 'silent')
  const resolve = createNameLookups({ hostsFile, servers, system: never })
  const began = performance.now()
  const names = Array.from({ length: 20 }, (_, number) => `silent${number}.example`)
  await Promise.all(names.map((name) => assert.rejects(found(resolve, name), { code: 'ETIMEOUT' })))
  assert.ok(performance.now() - began < 30_000)
  assert.ok(asked() >= 40)
})

test('a name that the servers do not know goes to the system, one at a time, and some wait', async () => {
  const { servers } = await startNameServer(() => undefined)
  const waiting: (() => void)[] = []
  const system: Resolve = (_name, _options, callback) =>
    void waiting.push(() => callback(null, [{ address: '192.0.2.3', family: 4 }]))
  const resolve = createNameLookups({ hostsFile, servers, system })
  const names = Array.from({ length: 25 }, (_, number) => `minio${number}`)
  const refused: string[] = []
  const looked = names.map((name) => found(resolve, name).catch(({ message }) => void refused.push(message)))
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await until(() => refused.length === 4)
  assert.match(refused.join(), /^(too many host names are being looked up,?){4}$/)
  for (let left = 21; left > 0; left--) {
    await until(() => waiting.length > 0)
    assert.equal(waiting.length, 1)
    waiting.shift()?.()
  }
  await Promise.all(looked)
  assert.equal(refused.length, 4)
})

test('without any name server, and for names that none can be asked, the system decides', async () => {
  const closed = createSocket('udp4')
  await new Promise<void>((resolve) => closed.bind(0, '127.0.0.1', resolve))
  const servers = [`127.0.0.1:${closed.address().port}`]
  closed.close()
  const unknown = Object.assign(new Error('not found'), { code: 'ENOTFOUND' })
  const resolve = createNameLookups({
    hostsFile,
    servers,
    system: (_name, _options, callback) => callback(unknown, []),
  })
  for (const name of ['unknown.example', '!', '$name'])
    await assert.rejects(found(resolve, name), { code: 'ENOTFOUND' }, name)
})
