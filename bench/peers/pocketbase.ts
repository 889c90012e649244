import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { freePort } from '#test/free-port.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { answerTo, assertSameRows, rowsOf } from '../answers.ts'
import type { Load, Request } from '../load/load.ts'
import { type CheckedLoad, CONNECTIONS, ids, PASSWORD } from '../loads.ts'
import { type Running, startServing } from '../peer.ts'
import type { Bench } from '../scenario.ts'
import { type PeerDefinition, run } from './peer-definition.ts'

const FOLDER = path.join(import.meta.dirname, 'pocketbase/bin')
const PROGRAM = path.join(FOLDER, 'base')
const MODULE = 'github.com/pocketbase/pocketbase/examples/base@v0.36.8'
const ADMIN = { identity: 'root@example.com', password: PASSWORD }
const USERS = '/api/collections/users'
const ROWS = '/api/collections/bench_rows/records'
const JSON_TYPE = { 'content-type': 'application/json' }

export const pocketBase: PeerDefinition = {
  about:
    '0.36.8; SQLite in its process, not PostgreSQL: WAL, synchronous NORMAL; bcrypt, cost 10; rules ask for a signed-in user; sessions are signed tokens',
  isInstalled: () => existsSync(PROGRAM),
  install: () => run('go', ['install', '-v', MODULE], undefined, { GOBIN: FOLDER }),
  start,
  loads: {
    async session({ url }) {
      const headers = await signedIn(url)
      const request = { method: 'POST', path: `${USERS}/auth-refresh` }
      return checkedUser({ url, headers, requests: [request], connections: CONNECTIONS })
    },
    async signIn({ url }) {
      await signedIn(url)
      const body = JSON.stringify({ identity: 'ada@example.com', password: PASSWORD })
      const request = { method: 'POST', path: `${USERS}/auth-with-password`, body }
      return checkedUser({ url, headers: JSON_TYPE, requests: [request], connections: CONNECTIONS })
    },
    row: (peer, bench) =>
      rows(peer, bench, {
        requests: ids.map((id) => ({ path: `${ROWS}/${keyOf(id)}` })),
        where: `id = ${ids[0]}`,
      }),
    rows100: (peer, bench) => rows(peer, bench, firstRows(100)),
    rows1000: (peer, bench) => rows(peer, bench, firstRows(1_000)),
  },
}

const firstRows = (count: number) => {
  const query = new URLSearchParams({
    perPage: `${count}`,
    skipTotal: '1',
    filter: `id <= '${keyOf(count)}'`,
  })
  return { requests: [{ path: `${ROWS}?${query}` }], where: `id <= ${count}` }
}

/** Its keys are texts of 15 characters. */
const keyOf = (id: number): string => `r${String(id).padStart(14, '0')}`

async function start(bench: Bench): Promise<Running> {
  const folder = await createTemporaryFolder()
  const dir = ['--dir', path.join(folder, 'data')]
  bench.after(() => removeFolder(folder))
  await promisify(execFile)(PROGRAM, ['superuser', 'upsert', ADMIN.identity, ADMIN.password, ...dir])
  const url = `http://127.0.0.1:${await freePort()}`
  const args = ['serve', '--http', new URL(url).host, ...dir]
  const running = await startServing(PROGRAM, args, { url, ready: '/api/health' })
  bench.after(running.stop)
  await makeRows(url, path.join(folder, 'data/data.db'), bench)
  return running
}

const FIELDS = {
  name: 'text',
  email: 'email',
  active: 'bool',
  price: 'number',
  created_at: 'date',
  note: 'text',
  meta: 'json',
}

/** The collection by its API, and its rows, which are those of `bench_rows`, in the file of its database. */
async function makeRows(url: string, file: string, { service: { databaseUrl } }: Bench): Promise<void> {
  const load = { url, headers: JSON_TYPE, requests: [], connections: 1 }
  const admin = await post(load, '/api/collections/_superusers/auth-with-password', ADMIN)
  const rule = "@request.auth.id != ''"
  const fields = Object.entries(FIELDS).map(([name, type]) => ({ name, type }))
  const collection = { name: 'bench_rows', type: 'base', listRule: rule, viewRule: rule, fields }
  const headers = { ...JSON_TYPE, authorization: (admin as { token: string }).token }
  await post({ ...load, headers }, '/api/collections', collection)
  const database = new DatabaseSync(file)
  const insert = database.prepare(
    `insert into bench_rows (id, ${Object.keys(FIELDS).join(', ')}) values (?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  database.exec('begin')
  for (const row of await rowsOf(databaseUrl, 'select * from bench_rows order by id')) {
    const { id, name, email, active, price, created_at, note, meta } = row
    const time = (created_at as Date).toISOString().replace('T', ' ')
    insert.run(
      keyOf(Number(id)),
      `${name}`,
      `${email}`,
      active ? 1 : 0,
      Number(price),
      time,
      `${note ?? ''}`,
      JSON.stringify(meta),
    )
  }
  database.exec('commit')
  database.close()
}

const post = (load: Load, path: string, body: object): Promise<unknown> =>
  answerTo(load, { method: 'POST', path, body: JSON.stringify(body) })

async function signedIn(url: string): Promise<Readonly<Record<string, string>>> {
  const load = { url, headers: JSON_TYPE, requests: [], connections: 1 }
  const identity = { email: 'ada@example.com', password: PASSWORD }
  await post(load, `${USERS}/records`, { ...identity, passwordConfirm: PASSWORD, name: 'ada' }).catch(
    () => {},
  )
  const { token } = (await post(load, `${USERS}/auth-with-password`, {
    identity: identity.email,
    password: PASSWORD,
  })) as { token: string }
  return { ...JSON_TYPE, authorization: token }
}

function checkedUser(load: Load): CheckedLoad {
  const [request = { path: '/' }] = load.requests
  return {
    load,
    async check() {
      const { record } = (await answerTo(load, request)) as { record: { email: string } }
      assert.equal(record.email, 'ada@example.com')
    },
  }
}

type Reads = { readonly requests: readonly Request[]; readonly where: string }

async function rows({ url }: Running, { service }: Bench, { requests, where }: Reads): Promise<CheckedLoad> {
  const load = { url, headers: await signedIn(url), requests, connections: CONNECTIONS }
  const [request = { path: '/' }] = requests
  return {
    load,
    async check() {
      const found = (await answerTo(load, request)) as { items?: object[] }
      const expected = await rowsOf(
        service.databaseUrl,
        `select * from bench_rows where ${where} order by id`,
      )
      const names = ['id', ...Object.keys(FIELDS)]
      const plain = (found.items ?? [found]).map((record) =>
        Object.fromEntries(
          Object.entries({ ...record } as Record<string, unknown>)
            .filter(([name]) => names.includes(name))
            .map(([name, value]) => [name, name === 'id' ? Number(String(value).slice(1)) : value]),
        ),
      )
      // A text that is null in PostgreSQL is empty in it.
      assertSameRows(
        plain,
        expected.map((row) => ({ ...row, note: row.note ?? '' })),
      )
    },
  }
}
