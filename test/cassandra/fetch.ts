import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { LIBRARIES } from './libraries.ts'

/** `npm run cassandra`: downloads the server for the tests of the driver scylladb (66 MB), once. Needs Java and Maven. */
if (!existsSync(LIBRARIES)) {
  const parent = path.dirname(LIBRARIES)
  await mkdir(parent, { recursive: true })
  // Renamed when the download is complete.
  const folder = await mkdtemp(path.join(parent, 'fetching-'))
  const pom = path.join(import.meta.dirname, 'pom.xml')
  const fetched = spawnSync(
    'mvn',
    ['-B', '-ntp', '-q', '-f', pom, 'dependency:copy-dependencies', `-DoutputDirectory=${folder}`],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  if (fetched.error) throw fetched.error
  if (fetched.status === 0) await rename(folder, LIBRARIES)
  else await rm(folder, { recursive: true })
  process.exitCode = fetched.status ?? 1
}
