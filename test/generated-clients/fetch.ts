import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { completeIn, NPM_FOLDER, NPM_PACKAGES, PYTHON_FOLDER, PYTHON_PACKAGES } from './tools.ts'

/** `npm run generators`: installs the generators of clients for the tests, once. One whose registry is not reached stays away. */
const run = (program: string, ...args: string[]): SpawnSyncReturns<Buffer> =>
  spawnSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })

async function install(folder: string, ...steps: (() => SpawnSyncReturns<Buffer>)[]): Promise<void> {
  if (existsSync(completeIn(folder))) return
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  if (steps.every((step) => step().status === 0)) await writeFile(completeIn(folder), '')
  else process.exitCode = 1
}

await install(NPM_FOLDER, () => run('npm', 'install', '--prefix', NPM_FOLDER, ...NPM_PACKAGES))
await install(
  PYTHON_FOLDER,
  () => run('python3', '-m', 'venv', PYTHON_FOLDER),
  () => run(path.join(PYTHON_FOLDER, 'bin', 'pip'), 'install', '-q', ...PYTHON_PACKAGES),
)
