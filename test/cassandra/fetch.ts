import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { LIBRARIES } from './libraries.ts'

/** `npm run cassandra`: fetches the server for the tests of the driver scylladb (66 MB), once. Needs a JDK or JRE, and Maven. */
if (!existsSync(LIBRARIES)) {
  const parent = path.dirname(LIBRARIES)
  await mkdir(parent, { recursive: true })
  // Under its own name only when it is whole.
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
