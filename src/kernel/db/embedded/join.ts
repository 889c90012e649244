import { readlink, realpath } from 'node:fs/promises'
import path from 'node:path'
import { type EmbeddedServer, urlsOf } from '../embedded.ts'
import { onConnection } from '../guarded-client.ts'
import { readPidFile, stateOf } from './pid-file.ts'
import { pidFileOf } from './previous-server.ts'

/**
 * The server that another process of the service runs on this folder; undefined when there is none. Only the other process stops it
 * and reports its end.
 */
export async function joinEmbedded(dir: string, password: string): Promise<EmbeddedServer | undefined> {
  const folder = await realpath(dir).catch(() => undefined)
  if (folder === undefined) return undefined
  const file = await readPidFile(pidFileOf(folder))
  if (file?.status !== 'ready' || (await stateOf(file)) !== 'running') return undefined
  const socket = await readlink(path.join(folder, 'socket')).catch(() => folder)
  const url = urlsOf(socket, '5432')
  const superuserUrl = url('postgres', password, 'postgres')
  return {
    url,
    superuserUrl,
    version: await versionOf(superuserUrl),
    stop: async () => {},
    died: new Promise(() => {}),
  }
}

async function versionOf(url: string): Promise<string> {
  return onConnection({ url, name: 'start' }, async (client) => {
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    return rows[0]?.server_version ?? ''
  })
}
