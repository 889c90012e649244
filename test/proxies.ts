import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'
import { blocksOf } from './journeys/pages.ts'
import { exitOf, hasExited } from './processes.ts'
import { createTemporaryFolder, removeFolder } from './temporary-folder.ts'

const PAGE = 'docs/guides/deploying.md'
const PROGRAMS = { nginx: '/usr/sbin/nginx', haproxy: '/usr/sbin/haproxy' } as const

export type ProxyName = keyof typeof PROGRAMS

/** The `skip` option for tests with the documented proxies: the reason if one is missing, otherwise false. */
export const WITHOUT_PROXIES =
  Object.values(PROGRAMS)
    .filter((program) => !existsSync(program))
    .map((program) => `there is no ${program}`)
    .join(', ') || false

export type StartedProxy = {
  readonly url: string
  /** Its log so far. */
  output(): string
  stop(): Promise<void>
}

/**
 * Starts a proxy with the settings of the guide, in front of two services. Replaced are the ports, the file names of the guide's machine, and
 * TLS by a plain port on the loopback address.
 */
export async function startProxy(name: ProxyName, ports: readonly [number, number]): Promise<StartedProxy> {
  const folder = await createTemporaryFolder()
  const port = await freePort()
  const file = path.join(folder, `${name}.conf`)
  await writeFile(file, surrounded(name, folder, settingsOf(name, port, ports)))
  const args = name === 'nginx' ? ['-e', 'stderr', '-c', file, '-p', folder] : ['-db', '-f', file]
  if (name === 'nginx') await mkdir(path.join(folder, 'temporary'))
  await chmod(folder, 0o755)
  const child = spawn(PROGRAMS[name], args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
    })
  while (!(await listens(port))) {
    assert.ok(!hasExited(child), output)
    await sleep(20)
  }
  return {
    url: `http://127.0.0.1:${port}`,
    output: () => output,
    async stop() {
      child.kill('SIGTERM')
      await exitOf(child)
      await removeFolder(folder)
    },
  }
}

/** The guide's settings, as `upstream`, `server` and sections of their own. */
function settingsOf(name: ProxyName, port: number, [first, second]: readonly [number, number]): string {
  const blocks = blocksOf(PAGE).filter(({ language, text }) => language === name && text.includes(':8081'))
  assert.equal(blocks.length, 1, `${PAGE} shows settings of ${name} for two processes`)
  const replaced = (blocks[0]?.text ?? '')
    .replaceAll(':8080', `:${first}`)
    .replaceAll(':8081', `:${second}`)
    .replace(/^ *ssl_certificate.*\n/gm, '')
    .replace(/listen 443 ssl;|bind :443 ssl crt \S+/, (found) =>
      found.startsWith('listen') ? `listen 127.0.0.1:${port};` : `bind 127.0.0.1:${port}`,
    )
  assert.match(replaced, new RegExp(`127.0.0.1:${port}`))
  return replaced
}

function surrounded(name: ProxyName, folder: string, settings: string): string {
  if (name === 'haproxy') return settings
  return [
    'daemon off;',
    `pid ${folder}/nginx.pid;`,
    'error_log stderr warn;',
    'worker_processes 2;',
    'events { worker_connections 1024; }',
    'http {',
    'access_log off;',
    ...['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (kind) => `${kind}_temp_path ${folder}/temporary/${kind};`,
    ),
    settings,
    '}',
    '',
  ].join('\n')
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
