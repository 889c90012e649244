import assert from 'node:assert/strict'
import path from 'node:path'
import { freePort } from '#test/free-port.ts'
import { answerTo, assertSameRows, rowsOf } from '../answers.ts'
import type { Load } from '../load/load.ts'
import { type CheckedLoad, CONNECTIONS, ids, PASSWORD } from '../loads.ts'
import { type Running, startPeer } from '../peer.ts'
import type { Bench } from '../scenario.ts'
import { secret } from '../service.ts'
import { inFolder, type PeerDefinition } from './peer-definition.ts'

const { file, isInstalled, install } = inFolder('parse-server')
const NODE = file(path.join('node_modules', '.bin', 'node'))
const ADA = { username: 'ada', password: PASSWORD }
const CLASS = '/parse/classes/BenchRow'
const HEADERS = { 'content-type': 'application/json', 'x-parse-application-id': 'bench' }
const FIELDS = {
  name: 'String',
  email: 'String',
  active: 'Boolean',
  price: 'Number',
  created_at: 'Date',
  note: 'String',
  meta: 'Object',
}

/** In the client's database of the service, in tables of its own. */
export const parseServer: PeerDefinition = {
  about: '9.10.0 on Node 22; bcrypt; sessions cached for 5 s; rows readable with the application id alone',
  isInstalled,
  install,
  async start(bench) {
    const masterKey = secret()
    const running = await startPeer(
      file('server.mjs'),
      [bench.service.databaseUrl, `${await freePort()}`, masterKey],
      NODE,
    )
    bench.after(running.stop)
    await makeRows(running.url, masterKey, bench)
    return running
  },
  loads: {
    async session({ url }) {
      const { sessionToken } = await signUpOrIn(url)
      const headers = { ...HEADERS, 'x-parse-session-token': sessionToken }
      return checkedUser({ url, headers, requests: [{ path: '/parse/users/me' }], connections: CONNECTIONS })
    },
    async signIn({ url }) {
      await signUpOrIn(url)
      const request = { method: 'POST', path: '/parse/login', body: JSON.stringify(ADA) }
      return checkedUser({ url, headers: HEADERS, requests: [request], connections: CONNECTIONS })
    },
    row: async (peer, bench) =>
      rows(peer, bench, { paths: ids.map((id) => `${CLASS}/${id}`), where: `id = ${ids[0]}` }),
    rows100: async (peer, bench) => rows(peer, bench, firstRows(100)),
    rows1000: async (peer, bench) => rows(peer, bench, firstRows(1_000)),
  },
}

const firstRows = (count: number) => {
  const query = new URLSearchParams({
    where: JSON.stringify({ n: { $lte: count } }),
    limit: `${count}`,
    order: 'n',
  })
  return { paths: [`${CLASS}?${query}`], where: `id <= ${count}` }
}

/** The class by its API, and its rows, whose keys are those of `bench_rows` as texts, by SQL. */
async function makeRows(url: string, masterKey: string, { service }: Bench): Promise<void> {
  const headers = { ...HEADERS, 'x-parse-master-key': masterKey }
  const fields = Object.entries({ ...FIELDS, n: 'Number' }).map(([name, type]) => [name, { type }])
  const body = JSON.stringify({ className: 'BenchRow', fields: Object.fromEntries(fields) })
  await answerTo(
    { url, headers, requests: [], connections: 1 },
    { method: 'POST', path: '/parse/schemas/BenchRow', body },
  )
  const names = Object.keys(FIELDS).join(', ')
  await service.sql(
    `insert into "BenchRow" ("objectId", "createdAt", "updatedAt", n, ${names}) select id::text, now(), now(), id, ${names} from bench_rows;
     create index on "BenchRow" (n)`,
  )
}

async function signUpOrIn(url: string): Promise<{ sessionToken: string }> {
  const load = { url, headers: HEADERS, requests: [], connections: 1 }
  const body = JSON.stringify(ADA)
  const path = '/parse/users'
  await answerTo(load, { method: 'POST', path, body }).catch(() => {})
  return (await answerTo(load, { method: 'POST', path: '/parse/login', body })) as { sessionToken: string }
}

function checkedUser(load: Load): CheckedLoad {
  const [request = { path: '/' }] = load.requests
  return {
    load,
    async check() {
      const { username } = (await answerTo(load, request)) as { username: string }
      assert.equal(username, ADA.username)
    },
  }
}

type Reads = { readonly paths: readonly string[]; readonly where: string }
type Found = { readonly results?: readonly Found[]; readonly created_at?: { readonly iso: string } }

function rows({ url }: Running, { service }: Bench, { paths, where }: Reads): CheckedLoad {
  const load = { url, headers: HEADERS, requests: paths.map((path) => ({ path })), connections: CONNECTIONS }
  const names = Object.keys(FIELDS).join(', ')
  return {
    load,
    async check() {
      const found = (await answerTo(load, { path: paths[0] ?? '' })) as Found
      const plain = (found.results ?? [found]).map(({ created_at, ...row }) => ({
        ...pick(row),
        created_at: created_at?.iso,
      }))
      const expected = await rowsOf(
        service.databaseUrl,
        `select ${names} from bench_rows where ${where} order by id`,
      )
      // It leaves members out that are null.
      assertSameRows(plain.map(pick), expected.map(pick))
    },
  }
}

const pick = (row: object): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(row).filter(([name, value]) => name in FIELDS && value !== null && value !== undefined),
  )
