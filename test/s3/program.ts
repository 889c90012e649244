import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

/** An S3-compatible server that checks signatures (Apache-2.0). Servers on npm that are easier to start accept any signature. */
export const MODULE = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0'

const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache')

/** Outside the repository, so that all clones share it: building it takes minutes. */
export const PROGRAM = path.join(cache, 'gatehouse', 'versitygw-1.8.0', 'versitygw')

/** The `skip` option for tests with a real S3 server: the reason if it is missing, otherwise false. */
export const WITHOUT_S3 = existsSync(PROGRAM) ? false : 'there is no S3 server: npm run s3 builds one'
