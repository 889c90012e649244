import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitOf, hasExited } from '#test/processes.ts'
import { removeFolder } from '#test/temporary-folder.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** The program as users start it, in a new folder, on a free port. */
export type Program = Started & { readonly url: string }

/** A program that may not accept requests yet. */
export type Started = {
  readonly child: ChildProcess
  /** All output so far. */
  output(): string
  /** The part of the output that was written to stderr. */
  errors(): string
  /** Sends a signal, waits for the exit and returns the exit code. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

export async function createTemporaryHome(): Promise<{
  folder: string
  key(): Promise<string>
  remove(): Promise<void>
}> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-journey-'))
  return {
    folder,
    key: async () => (await readFile(path.join(folder, 'data/default-key'), 'utf8')).trim(),
    remove: () => removeFolder(folder),
  }
}

/** `wrap`: a command that runs the one after it. `root`: the checkout whose program is started. */
export async function startProgram(
  folder: string,
  env: Env = {},
  wrap: readonly string[] = [],
  root = ROOT,
): Promise<Program> {
  const program = spawnProgram(folder, env, wrap, root)
  const { child, output } = program
  while (!output().includes('"event":"ready"')) {
    assert.ok(!hasExited(child), `the service exited:\n${output()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const ready = output()
    .split('\n')
    .find((line) => line.includes('"event":"ready"'))
  return { ...program, url: `http://127.0.0.1:${JSON.parse(ready ?? '').port}` }
}

export type Env = Readonly<Record<string, string>>

/** Exit code and output of a command. */
export type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string }

/** An administrator with the password, made by the command line. `root`: as of startProgram. */
export async function createAdmin(
  folder: string,
  { email, password }: { readonly email: string; readonly password: string },
  root = ROOT,
): Promise<void> {
  const args = 'users create --role admin --name Root --password-stdin --email'.split(' ')
  const { code, stderr } = await runProgram(folder, [...args, email], {}, password, root)
  assert.equal(code, 0, stderr)
}

/** Runs a command and waits for its exit. `root`: as of startProgram. */
export async function runProgram(
  folder: string,
  args: readonly string[],
  env: Env = {},
  input = '',
  root = ROOT,
): Promise<Ended> {
  const child = spawnCommand(folder, args, env, [], root)
  child.stdin.end(input)
  const printed = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (chunk) => {
      printed[name] += chunk
    })
  await once(child, 'close')
  return { code: child.exitCode, ...printed }
}

export function spawnCommand(
  folder: string,
  args: readonly string[],
  env: Env,
  wrap: readonly string[] = [],
  root = ROOT,
) {
  const bin = path.join(root, 'bin/gatehouse.mjs')
  const [command = '', ...rest] = [...wrap, process.execPath, bin, ...args]
  return spawn(command, rest, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', SERVICE_SERVER__PORT: '0', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
}

export function spawnProgram(
  folder: string,
  env: Env = {},
  wrap: readonly string[] = [],
  root = ROOT,
): Started {
  const child = spawnCommand(folder, ['serve'], env, wrap, root)
  child.stdin.end()
  let output = ''
  let errors = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  child.stderr.on('data', (chunk) => {
    output += chunk
    errors += chunk
  })
  return {
    child,
    output: () => output,
    errors: () => errors,
    async end(signal) {
      if (hasExited(child)) return child.exitCode
      const closed = once(child, 'close')
      child.kill(signal)
      await exitOf(child)
      // The last lines of the output may arrive after the exit. A process that outlives it may keep its output open.
      if (signal !== 'SIGKILL') await Promise.race([closed, sleep(2_000, undefined, { ref: false })])
      return child.exitCode
    },
  }
}
