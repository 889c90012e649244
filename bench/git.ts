import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'

export const ROOT = path.resolve(import.meta.dirname, '..')

/** Runs git in this clone, which may belong to another user than this process. */
export async function git(...args: readonly string[]): Promise<string> {
  const all = ['-c', 'safe.directory=*', '-C', ROOT, ...args]
  const { stdout } = await promisify(execFile)('git', all, { maxBuffer: 2 ** 26 })
  return stdout.trim()
}
