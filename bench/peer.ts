import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { createInterface } from 'node:readline'

/** Runs a program of `peers/` in a separate process while `work` runs, and passes its URL to `work`. */
export async function withPeer<T>(
  program: string,
  args: readonly string[],
  work: (url: string) => Promise<T>,
): Promise<T> {
  const file = path.join(import.meta.dirname, 'peers', program)
  const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  try {
    const [port] = await Promise.race([once(createInterface(child.stdout), 'line'), exited])
    if (child.exitCode !== null) throw new Error(`${program} exited before it listened`)
    return await work(`http://127.0.0.1:${port}`)
  } finally {
    child.kill('SIGTERM')
    await exited
  }
}
