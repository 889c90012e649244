import { spawn } from 'node:child_process'
import { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { WATCHED } from '#kernel/db/embedded/guarded-process.ts'
import { killWithChildren } from '#kernel/db/embedded/processes.ts'
import { ENVIRONMENT } from '#kernel/db/embedded/system-user.ts'
import { redactText } from '#kernel/redact.ts'
import type { Program } from './programs.ts'

/** A program of PostgreSQL that has failed. The message is what it wrote to stderr, bounded and without credentials. */
export class ProgramError extends Error {}

export type RunningProgram = {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Resolves when it has ended with 0; rejects with a ProgramError, or with the reason of the signal. */
  readonly ended: Promise<void>
}

/** Bytes of stderr that are kept. */
const MAX_OUTPUT = 4_096
/** Time for a program to end its statement after SIGINT, milliseconds. */
const INTERRUPT_MS = 5_000

/**
 * Starts a program that ends with this process, also after SIGKILL (`guarded-process.ts`), and by SIGINT when the signal aborts. Address and
 * password are in its environment, which other users cannot read, never in its arguments. The arguments are passed on as they are: the shell
 * runs one fixed line.
 */
export function runProgram(
  { file }: Program,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  signal: AbortSignal,
): RunningProgram {
  const child = spawn('/bin/sh', ['-c', WATCHED, 'gatehouse', file, ...args], {
    cwd: '/',
    env: { ...ENVIRONMENT, ...environment },
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    detached: true,
  })
  const guard = child.stdio[3]
  guard?.on('error', () => {})
  // A program that has failed closes it; `ended` has the reason.
  child.stdin.on('error', () => {})
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < MAX_OUTPUT) said += text.slice(0, MAX_OUTPUT - said.length)
  })
  let late: NodeJS.Timeout | undefined
  const interrupt = () => {
    child.kill('SIGINT')
    late = setTimeout(() => void killWithChildren(child.pid ?? -1), INTERRUPT_MS)
  }
  if (signal.aborted) interrupt()
  else signal.addEventListener('abort', interrupt, { once: true })
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  child.once('error', reject)
  child.once('exit', () => {
    // The line keeps the watcher from signalling a process id that another process may get; its end closes the pipes.
    if (guard instanceof Socket) guard.end('done\n')
  })
  child.once('close', (code) => {
    clearTimeout(late)
    signal.removeEventListener('abort', interrupt)
    if (code === 0) resolve()
    else reject(signal.aborted ? signal.reason : new ProgramError(sentenceOf(said, file, code)))
  })
  ended.catch(() => {})
  return { stdin: child.stdin, stdout: child.stdout, ended }
}

function sentenceOf(said: string, file: string, code: number | null): string {
  const text = redactText(said).trim()
  return text === '' ? `${file} ended with ${code ?? 'a signal'}` : text
}

/** Resolves when the program takes more, or has closed its input. */
export async function send(stdin: Writable, chunk: Buffer): Promise<void> {
  if (stdin.write(chunk)) return
  await new Promise<void>((resolve) => {
    const done = () => {
      for (const event of ['drain', 'close'] as const) stdin.off(event, done)
      resolve()
    }
    for (const event of ['drain', 'close'] as const) stdin.on(event, done)
    if (stdin.destroyed) done()
  })
}
