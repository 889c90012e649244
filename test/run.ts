/**
 * `node test/run.ts [OPTION…] [PATTERN…]` runs test files, by default all but the slow ones, in a few processes, each of which takes one file
 * after the other. The modules of the service and its optimised code are then ready for the next file. Options are those of `node --test`.
 * A file is named `*.slow.test.ts` if its subject is time, volume or killed processes, or if it starts programs
 * many times; `npm run slow` runs those.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Work } from './run-files.ts'
import { removeFolder } from './temporary-folder.ts'

const ALL = ['{src,test}/**/!(*.slow).test.ts', 'bench/{*,{brake,load,report}/*}.test.ts']
/** Four processes keep two cores busy: tests wait for a third of their time. */
const PROCESSES = 4
/** The modules and services of a file stay in memory until its process exits. */
const FILES_PER_PROCESS = 40
const OPTIONS = [
  '--test-global-setup=test/cluster.ts',
  `--test-concurrency=${PROCESSES}`,
  '--test-timeout=120000',
]

function filesOf(pattern: string): readonly string[] {
  const files = globSync(pattern)
  if (files.length === 0) throw new Error(`No file matches ${pattern}.`)
  return files
}

/** Those of `test/` first: the longest are among them, and one of these at the end would keep one core busy alone. */
const inOrder = (files: readonly string[]): readonly string[] =>
  files.toSorted().sort((a, b) => Number(b.startsWith('test/')) - Number(a.startsWith('test/')))

/** Creates a module for each process, which node:test starts. The last one takes all files that processes before it have left. */
async function createModules(folder: string, files: readonly string[]): Promise<readonly string[]> {
  const count = Math.max(Math.min(files.length, PROCESSES), Math.ceil(files.length / FILES_PER_PROCESS))
  const modules = Array.from({ length: count }, (_, index) => path.join(folder, `${index}.mjs`))
  for (const module of modules) {
    const most = module === modules.at(-1) ? files.length : FILES_PER_PROCESS
    await writeFile(module, moduleOf({ folder, files, most }))
  }
  return modules
}

const moduleOf = (work: Work): string => `
import { runFiles } from ${JSON.stringify(import.meta.resolve('./run-files.ts'))}
await runFiles(${JSON.stringify(work)})
`

async function run(options: readonly string[], files: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, ['--test', ...OPTIONS, ...options, ...files], { stdio: 'inherit' })
  // Ctrl-C at a terminal reaches the child as well, which then exits.
  process.on('SIGINT', () => {})
  const [code] = await once(child, 'exit')
  return Number(code ?? 1)
}

const given = process.argv.slice(2)
const isOption = (word: string): boolean => word.startsWith('--')
const patterns = given.filter((word) => !isOption(word))
const files = [...new Set((patterns.length > 0 ? patterns : ALL).flatMap(filesOf))]
const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-test-run-'))
try {
  process.exitCode = await run(given.filter(isOption), await createModules(folder, inOrder(files)))
} finally {
  await removeFolder(folder)
}
