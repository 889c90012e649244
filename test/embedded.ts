import { type ChildProcess, spawn } from 'node:child_process'
import { cp, readFile } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { readPidFile, stateOf } from '#kernel/db/embedded/pid-file.ts'
import { type EmbeddedOptions, startEmbedded } from '#kernel/db/embedded.ts'
import { exitOf, hasExited } from './processes.ts'
import { createTemporaryFolder, removeFolder } from './temporary-folder.ts'

export const PASSWORD = 'correct horse'

/** Durability is not needed: these tests kill processes, not the machine, and the kernel keeps written data. */
const SETTINGS = { fsync: 'off' }

export function optionsFor(dir: string, more: Partial<EmbeddedOptions> = {}): EmbeddedOptions {
  return { dir, password: PASSWORD, ...more, settings: { ...SETTINGS, ...more.settings } }
}

/** Node runs the callbacks in the order of their registration. */
export type Cleanup = { after(clean: () => Promise<void>): void }

/** Returns a path for a new server's folder. After the test, the server is stopped and the folder removed. */
export async function newFolder(t: Cleanup, name = 'postgres'): Promise<string> {
  const parent = await createTemporaryFolder()
  const dir = path.join(parent, name)
  t.after(async () => {
    await stopServerOn(dir)
    await removeFolder(parent)
  })
  return dir
}

/** Stops the server on a folder, no matter which process started it. */
async function stopServerOn(dir: string): Promise<void> {
  const file = await readPidFile(path.join(dir, 'data/postmaster.pid'))
  if (!file || (await stateOf(file)) !== 'running') return
  process.kill(file.pid, 'SIGINT')
  await eventually(() => hasEnded(dir))
}

/** Copies an initialised data folder in 50 ms; initdb takes a second. */
export async function madeFolder(t: Cleanup, template: string): Promise<string> {
  const dir = await newFolder(t)
  await cp(template, dir, { recursive: true })
  return dir
}

/** Initialises a folder for `madeFolder`, once per test file. */
export async function templateFolder(after: Cleanup['after']): Promise<string> {
  const dir = await newFolder({ after })
  await (await startEmbedded(optionsFor(dir))).stop()
  return dir
}

export type Child = {
  readonly process: ChildProcess
  readonly url: string
  /** Sends the signal to the whole process group. */
  kill(signal: NodeJS.Signals): void
  stop(): Promise<void>
}

/**
 * Starts the server in a child process, which then keeps running. Throws the error of a failed start. `wrap` is put in front of the
 * command; `before` is code that runs before the child reports the server's address.
 */
export async function startInChild(
  t: Cleanup,
  dir: string,
  { wrap = [], before = '' }: { wrap?: readonly string[]; before?: string } = {},
): Promise<Child> {
  const child = spawnStarter(dir, wrap, before)
  const kill = (signal: NodeJS.Signals) => void process.kill(-(child.pid ?? 0), signal)
  const stop = async () => {
    if (hasExited(child)) return
    kill('SIGTERM')
    await exitOf(child)
  }
  t.after(stop)
  for await (const line of createInterface({ input: child.stdout })) {
    // The code below prints these lines.
    const report = JSON.parse(line) as { url?: string; error?: string }
    if (report.error) throw new Error(report.error)
    if (report.url) return { process: child, url: report.url, kill, stop }
  }
  throw new Error('the child exited before its server was ready')
}

/** The child prints `{"step": …}` for each step, then `{"url": …}` or `{"error": …}`. */
export function spawnStarter(dir: string, wrap: readonly string[] = [], before = '') {
  const [command = process.execPath, ...args] = [...wrap, process.execPath]
  const code = `
    import { startEmbedded } from ${JSON.stringify(import.meta.resolve('#kernel/db/embedded.ts'))}
    const print = (report) => process.stdout.write(JSON.stringify(report) + '\\n')
    const options = { ...JSON.parse(process.argv[1]), report: (step) => print({ step }) }
    try {
      const server = await startEmbedded(options)
      // Keep running until SIGTERM, or until the test that started this process has exited.
      process.stdin.resume()
      process.once('SIGTERM', () => server.stop().then(() => process.exit(0)))
      ${before}
      print({ url: server.superuserUrl })
    } catch (error) {
      print({ error: error.message })
    }`
  const script = ['--input-type=module', '--eval', code, JSON.stringify(optionsFor(dir))]
  // Its own process group, like a foreground job of a terminal.
  return spawn(command, [...args, ...script], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
}

export async function postmasterOf(dir: string): Promise<number> {
  return Number.parseInt(await readFile(path.join(dir, 'data/postmaster.pid'), 'utf8'), 10)
}

/** Whether the server has exited. It removes its lock file last; its process id may remain as a zombie for a while. */
export async function hasEnded(dir: string): Promise<boolean> {
  return postmasterOf(dir).then(
    () => false,
    () => true,
  )
}

/** Waits until the condition holds. Throws after a minute. */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  const since = performance.now()
  while (!(await condition())) {
    if (performance.now() - since > 60_000) throw new Error('the condition did not hold within a minute')
    await sleep(20)
  }
}

export async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a connection may break while it is idle; a running query rejects by itself
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}
