import { Readable } from 'node:stream'
import { mock } from 'node:test'
import { terminal } from '#cli/terminal.ts'
import { main } from '../../src/main.ts'
import { type Ended, type Env, runProgram } from './program.ts'

export type RunCommand = (args: readonly string[], input?: string) => Promise<Ended>

/**
 * Runs the commands of a group (`gatehouse keys create …`). The first call of each command runs in a new process, as for an operator; later
 * calls run in this process, which takes a tenth of the time.
 */
export function createCommandRunner(folder: string, env: Env, group: string): RunCommand {
  const spawned = new Set<string>()
  return (args, input = '') => {
    const [name = ''] = args
    const isFirst = !spawned.has(name)
    spawned.add(name)
    return (isFirst ? runProgram : runHere)(folder, [group, ...args], env, input)
  }
}

/** Commands run one after the other, since environment, working folder and streams belong to the process. */
let last: Promise<unknown> = Promise.resolve()

/** Runs a command in this process, with the same result as in a new process. */
export function runHere(folder: string, args: readonly string[], env: Env = {}, input = ''): Promise<Ended> {
  const run = last.then(() => command(folder, args, env, input))
  last = run.catch(() => {})
  return run
}

async function command(folder: string, args: readonly string[], env: Env, input: string): Promise<Ended> {
  const leave = enter(folder, env)
  const printed = { stdout: '', stderr: '' }
  let code: number | undefined
  const write = (name: keyof typeof printed) => (text: string | Uint8Array) => {
    // A process writes nothing after its exit.
    if (code === undefined) printed[name] += text
    return true
  }
  // Capture only what the command writes: the test runner reports over standard output too.
  const capture = (say: (text: string) => void) => (text: string) => {
    const { mock: written } = mock.method(process.stdout, 'write', write('stdout'))
    say(text)
    written.restore()
  }
  const { say, sayRaw } = terminal
  const mocks = [
    mock.method(terminal, 'say', capture(say)),
    mock.method(terminal, 'sayRaw', capture(sayRaw)),
    mock.getter(terminal, 'input', () => Readable.from([Buffer.from(input)])),
    mock.method(process.stderr, 'write', write('stderr')),
    mock.method(process, 'exit', (given?: number) => {
      code ??= given ?? 0
      throw new Error('the command has exited')
    }),
  ]
  try {
    await main(['node', 'gatehouse', ...args]).catch((error: unknown) => {
      if (code === undefined) throw error
    })
    return { code: code ?? Number(process.exitCode ?? 0), ...printed }
  } finally {
    for (const { mock } of mocks) mock.restore()
    leave()
  }
}

/** Sets the environment and the working folder of a command. Returns a function that restores them. */
function enter(folder: string, env: Env): () => void {
  const before = { env: process.env, folder: process.cwd(), exitCode: process.exitCode }
  const listeners = SIGNALS.map((signal) => process.listeners(signal))
  process.env = { PATH: before.env.PATH ?? '', SERVICE_SERVER__PORT: '0', ...env }
  process.chdir(folder)
  return () => {
    process.env = before.env
    process.chdir(before.folder)
    process.exitCode = before.exitCode
    for (const [index, signal] of SIGNALS.entries())
      for (const listener of process.listeners(signal))
        if (!listeners[index]?.includes(listener)) process.off(signal, listener)
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
