import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { readPidFile, stateOf } from '#kernel/db/embedded/pid-file.ts'
import { type EmbeddedOptions, startEmbedded } from '#kernel/db/embedded.ts'
import { temporaryFolder } from './temporary.ts'

export const PASSWORD = 'correct horse'

/** Off the disk: what these tests kill are processes, and the system keeps what they have written. */
const SETTINGS = { fsync: 'off' }

export function optionsFor(dir: string, more: Partial<EmbeddedOptions> = {}): EmbeddedOptions {
  return { dir, password: PASSWORD, ...more, settings: { ...SETTINGS, ...more.settings } }
}

/** Node runs these in the order in which they were given. */
export type Cleanup = { after(clean: () => Promise<void>): void }

/** A place for a server's folder, which does not exist yet. After the test its server is stopped and it goes. */
export async function newFolder(t: Cleanup, name = 'postgres'): Promise<string> {
  const parent = await temporaryFolder()
  const dir = path.join(parent, name)
  t.after(async () => {
    await stopServerOn(dir)
    await rm(parent, { recursive: true, force: true })
  })
  return dir
}

/** Whoever started it. */
async function stopServerOn(dir: string): Promise<void> {
  const file = await readPidFile(path.join(dir, 'data/postmaster.pid'))
  if (!file || (await stateOf(file)) !== 'running') return
  process.kill(file.pid, 'SIGINT')
  await eventually(() => hasEnded(dir))
}

/** A copy of a made folder: 50 ms, where initdb takes a second. */
export async function madeFolder(t: Cleanup, template: string): Promise<string> {
  const dir = await newFolder(t)
  await cp(template, dir, { recursive: true })
  return dir
}

/** For `madeFolder`, once per file. */
export async function templateFolder(after: Cleanup['after']): Promise<string> {
  const dir = await newFolder({ after })
  await (await startEmbedded(optionsFor(dir))).stop()
  return dir
}

export type Child = {
  readonly process: ChildProcess
  readonly url: string
  /** Sends it to the whole process group. */
  kill(signal: NodeJS.Signals): void
  stop(): Promise<void>
}

/**
 * A process of its own that starts the server and then stays, or throws what the start says. `wrap` comes before
 * the command, `before` is code that runs before the server's address is told.
 */
export async function startInChild(
  t: Cleanup,
  dir: string,
  { wrap = [], before = '' }: { wrap?: readonly string[]; before?: string } = {},
): Promise<Child> {
  const child = spawnStarter(dir, wrap, before)
  const kill = (signal: NodeJS.Signals) => void process.kill(-(child.pid ?? 0), signal)
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    kill('SIGTERM')
    await once(child, 'exit')
  }
  t.after(stop)
  for await (const line of createInterface({ input: child.stdout })) {
    // What the code below prints.
    const said = JSON.parse(line) as { url?: string; error?: string }
    if (said.error) throw new Error(said.error)
    if (said.url) return { process: child, url: said.url, kill, stop }
  }
  throw new Error('the child ended before its server was there')
}

/** Says `{"step": …}` for each step, then `{"url": …}` or `{"error": …}`. */
export function spawnStarter(dir: string, wrap: readonly string[] = [], before = '') {
  const [command = process.execPath, ...args] = [...wrap, process.execPath]
  const code = `
    import { startEmbedded } from ${JSON.stringify(import.meta.resolve('#kernel/db/embedded.ts'))}
    const say = (what) => process.stdout.write(JSON.stringify(what) + '\\n')
    const options = { ...JSON.parse(process.argv[1]), report: (step) => say({ step }) }
    try {
      const server = await startEmbedded(options)
      // Until we are told to end, or the test that started us has ended.
      process.stdin.resume()
      process.once('SIGTERM', () => server.stop().then(() => process.exit(0)))
      ${before}
      say({ url: server.superuserUrl })
    } catch (error) {
      say({ error: error.message })
    }`
  const script = ['--input-type=module', '--eval', code, JSON.stringify(optionsFor(dir))]
  // A process group of its own, as a terminal's foreground job has.
  return spawn(command, [...args, ...script], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
}

export async function postmasterOf(dir: string): Promise<number> {
  return Number.parseInt(await readFile(path.join(dir, 'data/postmaster.pid'), 'utf8'), 10)
}

/** A server removes its lock file as the last thing, and its process id may belong to a zombie for a while. */
export async function hasEnded(dir: string): Promise<boolean> {
  return postmasterOf(dir).then(
    () => false,
    () => true,
  )
}

/** Fails when it has not come true after ten seconds. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const since = performance.now()
  while (!(await isSo())) {
    if (performance.now() - since > 10_000) throw new Error('it has not come true')
    await sleep(20)
  }
}

export async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // a connection that breaks while nothing is asked; what is asked rejects
  await client.connect()
  try {
    return (await client.query<Row>(sql)).rows
  } finally {
    await client.end()
  }
}
