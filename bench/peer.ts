import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export type Running = { readonly url: string; readonly pid: number; stop(): Promise<void> }

/** Runs a program that prints its port when it listens. */
export async function startPeer(
  file: string,
  args: readonly string[] = [],
  node = process.execPath,
): Promise<Running> {
  const child = spawn(node, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const [port] = await Promise.race([once(createInterface(child.stdout), 'line'), exited])
  if (child.exitCode !== null) throw new Error(`${file} exited before it listened`)
  return { url: `http://127.0.0.1:${port}`, pid: child.pid ?? 0, stop: () => stop(child) }
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), 5_000)
  await exited
  clearTimeout(patience)
}
