import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export type Running = { readonly url: string; readonly pid: number; stop(): Promise<void> }

/** Runs a program that prints its port when it listens. */
export async function startPeer(
  file: string,
  args: readonly string[] = [],
  node = process.execPath,
): Promise<Running> {
  const child = spawn(node, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await portIn(child.stdout)
  if (port === undefined) throw new Error(`${file} exited before it listened`)
  return { url: `http://127.0.0.1:${port}`, pid: child.pid ?? 0, stop: () => stop(child) }
}

/** Some print warnings first. Undefined when the output ends; its rest is read, so that the program never waits. */
async function portIn(output: Readable): Promise<number | undefined> {
  const lines = createInterface(output)
  return new Promise((resolve) => {
    lines.on('line', (line) => /^\d+$/.test(line) && resolve(Number(line)))
    lines.on('close', () => resolve(undefined))
  })
}

type Serving = {
  readonly url: string
  /** A path whose answer is 2xx as soon as it serves. */
  readonly ready: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** Long enough for a server that makes its tables first. */
const PATIENCE = 60_000

/** Runs a server that was told its port, and waits until it answers. */
export async function startServing(
  program: string,
  args: readonly string[],
  { url, ready, ...options }: Serving,
): Promise<Running> {
  const child = spawn(program, args, { stdio: 'ignore', ...options })
  // It cannot be run, and has ended then.
  child.once('error', () => {})
  const deadline = performance.now() + PATIENCE
  while (!(await isOk(`${url}${ready}`))) {
    const problem = hasEnded(child) ? 'ended' : performance.now() > deadline && 'did not answer in time'
    if (problem) {
      await stop(child)
      throw new Error(`${path.basename(program)} ${problem}`)
    }
    await sleep(50)
  }
  return { url, pid: child.pid ?? 0, stop: () => stop(child) }
}

const isOk = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(PATIENCE) }).then(
    ({ ok }) => ok,
    () => false,
  )

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

export async function stop(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exited
  clearTimeout(patience)
}
