import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

/** A runtime that comes as a program in a package of npm. */
export type RuntimeProgram = {
  readonly name: string
  readonly package: string
  readonly version: string
  /** Of the package's archive. */
  readonly integrity: string
  /** The program in the package. */
  readonly file: string
}

/** For Linux on x64, where `.ci/run` runs. The packages that npm would choose by platform need install scripts. */
export const PROGRAMS: readonly RuntimeProgram[] = [
  {
    name: 'Deno',
    package: '@deno/linux-x64-glibc',
    version: '2.9.6',
    integrity:
      'sha512-3md4TKLCuzsLDmfOoC5KN7NAZaxSVkMgm64vg6foD00JBADCpYS2/5QqXfzgnP5ZQz3iLP9vBQJtEgc116OAoQ==',
    file: 'deno',
  },
  {
    name: 'Bun',
    package: '@oven/bun-linux-x64',
    version: '1.4.0',
    integrity:
      'sha512-Du44zebtPXJujvMLmtIxEQ6ykOhYt7L/Q+YIGVm+Yy+Pj/fpOnq60ggwIpKp/pGAFbYHNiTrA3JTjuZ9MTbZIg==',
    file: 'bin/bun',
  },
  {
    name: 'workerd',
    package: '@cloudflare/workerd-linux-64',
    version: '1.20261117.1',
    integrity:
      'sha512-gZLA8X11m/luZwn+YA3+mDu61vdxNJzpksP/QZqjydKTQ+VUCulsK5gtn9Bqst1p3KJu2kafQpJ1nDQv4B23jA==',
    file: 'bin/workerd',
  },
]

const cache = process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache')

/** Outside the repository, so that all clones share it, and developers who change something else do without. */
export const folderOf = ({ name, version }: RuntimeProgram): string =>
  path.join(cache, 'gatehouse', `${name.toLowerCase()}-${version}`)

export const pathOf = (program: RuntimeProgram): string => path.join(folderOf(program), program.file)

/** Why a program cannot be run, or undefined. */
export function lackOf(program: RuntimeProgram): string | undefined {
  if (process.platform !== 'linux' || process.arch !== 'x64') return 'it is tried on Linux on x64 only'
  return existsSync(pathOf(program)) ? undefined : 'it is missing: npm run runtimes downloads it'
}
