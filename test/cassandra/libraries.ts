import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

const pom = readFileSync(path.join(import.meta.dirname, 'pom.xml'), 'utf8')
const version = /cassandra-all<\/artifactId>\s*<version>([^<]+)/.exec(pom)?.[1] ?? ''
const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache')

/** Outside the repository, so that all clones share it. */
export const LIBRARIES = path.join(cache, 'gatehouse', `cassandra-${version}`)
