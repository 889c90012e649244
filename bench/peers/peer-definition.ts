import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Running } from '../peer.ts'
import type { Bench, PeerWork } from '../scenario.ts'
import type { Http } from '../sides.ts'

/** Another product, in a folder of its own with the versions of its packages. */
export type PeerDefinition = {
  /** Version and what decides its speed. */
  readonly about: string
  isInstalled(): boolean
  install(): Promise<void>
  /** Registers its own end. */
  start(bench: Bench): Promise<Running>
  readonly loads: Readonly<
    Partial<Record<PeerWork, (peer: Running, bench: Bench) => Promise<Pick<Http, 'load' | 'check'>>>>
  >
}

const FOLDER = import.meta.dirname

/** A peer whose packages npm installs into its folder, with that list at last. */
export function inFolder(name: string) {
  const file = (name_: string) => path.join(FOLDER, name, name_)
  return {
    file,
    isInstalled: () => existsSync(file('node_modules/.package-lock.json')),
    install: () => run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], path.join(FOLDER, name)),
  }
}

/** Runs an installation, whose progress is on the terminal. */
export async function run(
  command: string,
  args: readonly string[],
  cwd: string = FOLDER,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const [code] = await Promise.race([once(child, 'exit'), once(child, 'error')])
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${code}`)
}
