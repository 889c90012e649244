import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type EmbeddedServer, startEmbedded } from '#kernel/db/embedded.ts'
import { provision } from '#kernel/db/provision.ts'
import { HEADER } from '#kernel/http/header-names.ts'
import { withClient } from '#test/database.ts'
import { postmasterOf } from '#test/embedded.ts'
import { freePort } from '#test/free-port.ts'
import { type DatabaseProxy, startProxy } from '#test/hostile/proxy.ts'
import { type MailSink, startMailSink } from './mail-sink.ts'

/** A service with two workers, and the dependencies that faults are injected into. */
export type Fixture = {
  readonly url: string
  /** Headers with the key of client `default` and the client's name. */
  readonly headers: Readonly<Record<string, string>>
  readonly proxy: DatabaseProxy
  readonly database: Database
  readonly mail: MailSink
  readonly service: Service
  /** Mount point of a small disk with the database's files and the service's log. Undefined without root, who can mount one. */
  readonly disk: string | undefined
  close(): Promise<void>
}

export type Database = {
  /** Direct URL of a database, without the proxy, as the superuser. */
  readonly url: (database: string) => string
  stop(signal: 'SIGINT' | 'SIGQUIT'): Promise<void>
  start(): Promise<void>
  /** Whether the server has exited by itself. */
  hasDied(): boolean
  freeze(): Promise<() => void>
}

export type Service = {
  readonly child: ChildProcess
  workers(): Promise<readonly number[]>
  log(): Promise<string>
}

export const CONTROL = 'chaos'
export const WORKERS = 2
/** Number of rows in `seeded`, for streams. */
export const SEEDED = 20_000

export async function createFixture(): Promise<Fixture> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-chaos-'))
  const unmount = mount(folder)
  const closing: (() => unknown)[] = [
    () => rm(folder, { recursive: true, force: true }),
    unmount ?? (() => {}),
  ]
  const close = async () => {
    for (const act of closing.splice(0).reverse()) await act()
  }
  try {
    const role = { name: CONTROL, password: randomBytes(8).toString('hex') }
    const { database, port, end } = await startDatabase(path.join(folder, 'postgres'), role)
    closing.push(end)
    const proxy = await startProxy(`postgres://${role.name}:${role.password}@127.0.0.1:${port}/${CONTROL}`)
    closing.push(proxy.close)
    const mail = await startMailSink()
    closing.push(mail.close)
    const { service, url, stop } = await startService(folder, proxy.url, mail.url)
    closing.push(stop)
    const key = (await readFile(path.join(folder, 'data/default-key'), 'utf8')).trim()
    const headers = { 'content-type': 'application/json', apikey: key, [HEADER.client]: 'default' }
    await makeTables(url, headers)
    const disk = unmount === undefined ? undefined : folder
    return { url, headers, proxy, database, mail, service, disk, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Mounts a small disk on the folder. Returns undefined if that is not allowed. */
function mount(folder: string): (() => void) | undefined {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512m', 'tmpfs', folder], { stdio: 'ignore' })
    return () => execFileSync('umount', ['-l', folder])
  } catch {
    return undefined
  }
}

type Role = { readonly name: string; readonly password: string }

async function startDatabase(dir: string, role: Role) {
  const port = await freePort()
  const password = randomBytes(8).toString('hex')
  const settings = { listen_addresses: '127.0.0.1', port: `${port}` }
  const options = { dir, password, settings }
  let server: EmbeddedServer
  let isDead = false
  const start = async () => {
    server = await startEmbedded(options)
    isDead = false
    server.died.then(() => {
      isDead = true
    })
  }
  await start()
  const url = (name: string) => `postgres://postgres:${password}@127.0.0.1:${port}/${name}`
  await provision(url('postgres'), { roles: [role], databases: [{ name: role.name, owner: role.name }] })
  await withClient(url('postgres'), (db) => db.query(`alter role ${role.name} createdb createrole`))
  const database: Database = {
    url,
    start,
    hasDied: () => isDead,
    async stop(signal) {
      process.kill(await postmasterOf(dir), signal)
      await server.died
    },
    async freeze() {
      const pids = await treeOf(await postmasterOf(dir))
      for (const pid of pids) process.kill(pid, 'SIGSTOP')
      return () => {
        for (const pid of pids) process.kill(pid, 'SIGCONT')
      }
    },
  }
  return { database, port, end: async () => (isDead ? undefined : server.stop()) }
}

async function startService(folder: string, databaseUrl: string, smtpUrl: string) {
  const file = path.join(folder, 'service.log')
  const output = openSync(file, 'a')
  const child = spawn(
    process.execPath,
    [path.resolve(import.meta.dirname, '../../bin/gatehouse.mjs'), 'serve'],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? '',
        DATABASE_URL: databaseUrl,
        SERVICE_SERVER__PORT: '0',
        SERVICE_SERVER__WORKERS: `${WORKERS}`,
        SERVICE_MAIL__TRANSPORT: 'smtp',
        SERVICE_MAIL__SMTP_URL: smtpUrl,
        // A statement whose packets are lost is given up five seconds later.
        SERVICE_CLIENTS__DEFAULT__STATEMENT_TIMEOUT: '5s',
        SERVICE_GATEWAY__MAX_ROWS: `${SEEDED}`,
        // Cheap hashes, because their cost is not part of this test.
        SERVICE_AUTH__PASSWORD__MEMORY: '1024',
        SERVICE_AUTH__PASSWORD__ITERATIONS: '1',
      },
      stdio: ['ignore', output, output],
    },
  )
  closeSync(output)
  const log = () => readFile(file, 'utf8')
  const service: Service = { child, log, workers: async () => (await treeOf(child.pid ?? 0)).slice(1) }
  while (!(await log()).includes('"event":"ready"')) {
    if (child.exitCode !== null) throw new Error(`The service exited:\n${await log()}`)
    await sleep(50)
  }
  const ready = (await log()).split('\n').find((line) => line.includes('"event":"ready"')) ?? ''
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  return { service, url: `http://127.0.0.1:${JSON.parse(ready).port}`, stop }
}

/** Process ids: the process first, then its children. */
async function treeOf(root: number): Promise<readonly number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,stat='])
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  const children = rows.filter(([, parent, state]) => Number(parent) === root && !state?.startsWith('Z'))
  return [root, ...children.map(([pid]) => Number(pid))]
}

async function makeTables(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const column = (name: string, data_type: string) => ({ name, data_type, nullable: false })
  for (const table_name of ['written', 'seeded']) {
    const columns = [column('number', 'bigint'), column('text', 'text')]
    await expect200(`${url}/management/tables`, 'POST', headers, { table_name, columns })
  }
  const rows = Array.from({ length: SEEDED }, (_, number) => ({ number, text: 'lorem ipsum '.repeat(10) }))
  await expect200(`${url}/gateway/insert`, 'PUT', headers, { table_name: 'seeded', insert_body: rows })
}

async function expect200(
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  body: object,
) {
  for (let tries = 20; ; tries--) {
    const answer = await fetch(url, { method, headers, body: JSON.stringify(body) })
    const text = await answer.text()
    if (answer.status === 200) return
    // The other worker may not see the new table for a second.
    if (answer.status !== 404 || tries === 0) throw new Error(`${url}: ${text}`)
    await sleep(100)
  }
}
