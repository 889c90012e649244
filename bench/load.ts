import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

/** Requests that are sent in turn, repeatedly. */
export type Load = {
  readonly url: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly targets: readonly { readonly path: string; readonly body?: string }[]
  /** A header with a different value in each request: the prefix and a counter of nine digits that begins at `from`. */
  readonly numbered?: { readonly name: string; readonly prefix: string; readonly from: number }
  readonly connections: number
}

const run = promisify(execFile)

/** wrk uses much less CPU than a load generator in Node. Without wrk, all ratios to a database are lower. */
export const loader = isThere('wrk', '-v') ? 'wrk' : 'undici (install wrk for representative figures)'

/** Maximum rate of responses per second, measured from a separate process. All responses must be 2xx. */
export function requestsPerSecond(load: Load, seconds: number): Promise<number> {
  return loader === 'wrk' ? byWrk(load, seconds) : byUndici(load, seconds)
}

export function isThere(command: string, argument: string): boolean {
  return spawnSync(command, [argument], { stdio: 'ignore' }).error === undefined
}

async function byWrk(load: Load, seconds: number): Promise<number> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gatehouse-wrk-'))
  try {
    const script = path.join(folder, 'load.lua')
    await writeFile(script, luaOf(load))
    const size = ['-t', '1', '-c', `${load.connections}`, '-d', `${seconds}`, '--timeout', '30']
    const { stdout, stderr } = await run('wrk', [...size, '-s', script, load.url])
    const [, rate] = /Requests\/sec: +([\d.]+)/.exec(stdout) ?? []
    // If wrk cannot parse the script, it runs without it and only writes to stderr.
    if (rate === undefined || stderr !== '' || /Non-2xx|Socket errors/.test(stdout))
      throw new Error(`${load.url}: ${stderr}${stdout}`)
    return Number(rate)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The Lua script. It formats all requests before the first is sent, unless each has a different header. */
function luaOf({ method = 'GET', headers = {}, targets, numbered }: Load): string {
  const text = (value: string) => `[==[${value}]==]`
  const fields = Object.entries(headers).map(
    ([name, value]) => `wrk.headers[ ${text(name)} ] = ${text(value)}`,
  )
  const list = targets.map((target) => `{${text(target.path)}, ${target.body ? text(target.body) : 'nil'}}`)
  return `
wrk.method = ${text(method)}
${fields.join('\n')}
local targets = {${list.join(',\n')}}
local requests = {}
local turn = 0
function init()
  for i, target in ipairs(targets) do requests[i] = wrk.format(nil, target[1], nil, target[2]) end
end
function request()
  turn = turn + 1
  ${numbered === undefined ? 'return requests[(turn - 1) % #requests + 1]' : numberedLua(numbered)}
end`
}

const numberedLua = ({ name, prefix, from }: NonNullable<Load['numbered']>): string => `
  local target = targets[(turn - 1) % #targets + 1]
  wrk.headers['${name}'] = string.format('${prefix}%09d', ${from} + turn - 1)
  return wrk.format(nil, target[1], nil, target[2])`

async function byUndici(load: Load, seconds: number): Promise<number> {
  const program = path.join(import.meta.dirname, 'peers/load.ts')
  const running = run(process.execPath, [program, `${seconds}`])
  running.child.stdin?.end(JSON.stringify(load))
  return Number((await running).stdout)
}
