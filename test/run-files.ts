import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import fc from 'fast-check'
import { noteStartedPrograms } from './processes.ts'
import { loadTestRunner } from './test-context.ts'

export type Work = {
  /** Holds a note for each file that a process has taken. */
  readonly folder: string
  /** Paths from the working directory. */
  readonly files: readonly string[]
  /** Number of files that this process takes. */
  readonly most: number
}

/** Of the test timeout: a property that fails slowly, or shrinks for long, is then reported with its seed and its error. */
const PROPERTY_SHARE = 0.75

/** Milliseconds that the process may take after its last file. */
const LAST = 60_000

/**
 * Runs the test files that no other process has taken, each as a suite: its `after` hooks stop what it has started before the next file is
 * imported. The timer keeps the process running when a test waits for an event that does not: without it the process would exit, and the
 * files that follow would not run. A test that has timed out may leave programs, loops and sockets, for which the run would wait forever:
 * programs are killed after each file, and the process exits a while after the last.
 */
export async function runFiles({ folder, files, most }: Work): Promise<void> {
  fc.installGlobalPlugin(
    fc.interruptAfterTimeLimit(PROPERTY_SHARE * testTimeout(), { failOnInterrupt: true }),
  )
  const killPrograms = noteStartedPrograms()
  const describeFile = await loadTestRunner()
  const alive = setInterval(() => {}, 60_000)
  let taken = 0
  let running: string | undefined
  process.on('exit', () => running && console.error(`The process exited during ${running}.`))
  for (const [index, file] of files.entries()) {
    if (taken === most) break
    if (!take(path.join(folder, `${index}.taken`))) continue
    taken++
    running = file
    await describeFile(file, () => import(pathToFileURL(file).href))
    for (const command of await killPrograms()) console.error(`${file} left a program: ${command}`)
    running = undefined
  }
  clearInterval(alive)
  setTimeout(exitLate, LAST).unref()
}

/** The timer does not keep the process, so something else does. The exit code is that of the tests. */
function exitLate(): void {
  console.error(`The process still has ${process.getActiveResourcesInfo().join(', ')} and exits.`)
  process.exit()
}

/** Milliseconds. node:test repeats its options for each process, and the last one counts. */
function testTimeout(): number {
  const option = process.execArgv.findLast((one) => one.startsWith('--test-timeout=')) ?? ''
  return Number(option.split('=')[1] ?? 120_000)
}

/** Whether this process is the first to write the note. */
function take(note: string): boolean {
  try {
    writeFileSync(note, '', { flag: 'wx' })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
