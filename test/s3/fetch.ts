import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { MODULE, PROGRAM } from './program.ts'

/** `npm run s3`: builds the server for the tests of object storage, once. Needs Go. */
if (!existsSync(PROGRAM)) {
  const env = { ...process.env, GOBIN: path.dirname(PROGRAM) }
  const built = spawnSync('go', ['install', MODULE], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  if (built.error) throw built.error
  process.exitCode = built.status ?? 1
}
