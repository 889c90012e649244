import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

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

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exited
  clearTimeout(patience)
}
