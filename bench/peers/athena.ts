import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { freePort } from '#test/free-port.ts'
import { createTemporaryFolder, removeFolder } from '#test/temporary-folder.ts'
import { answerTo, assertSameRows, rowsOf } from '../answers.ts'
import { type CheckedLoad, CONNECTIONS, ids } from '../loads.ts'
import { type Running, startServing } from '../peer.ts'
import type { Bench } from '../scenario.ts'
import { type PeerDefinition, run } from './peer-definition.ts'

const FOLDER = path.join(import.meta.dirname, 'athena/bin')
const PROGRAM = path.join(FOLDER, 'bin/athena_rs')
const CLIENT = 'bench'
const HEADERS = {
  'content-type': 'application/json',
  'x-athena-client': CLIENT,
  // Otherwise it keeps answers for minutes.
  'cache-control': 'no-cache',
}

/** Reads the rows where they are. */
export const athena: PeerDefinition = {
  about:
    '5.1.1; no keys and no log of requests, which need a database of its own; answers not cached, but equal requests at the same time share one query; 8 workers, up to 100 connections; log of errors',
  isInstalled: () => existsSync(PROGRAM),
  install: () => run('cargo', ['install', 'athena_rs', '--version', '5.1.1', '--locked', '--root', FOLDER]),
  start,
  loads: {
    row: async (peer, bench) =>
      rows(peer, bench, {
        bodies: ids.map((id) => ({ conditions: [{ eq_column: 'id', eq_value: id }] })),
        where: `id = ${ids[0]}`,
      }),
    rows100: async (peer, bench) => rows(peer, bench, firstRows(100)),
    rows1000: async (peer, bench) => rows(peer, bench, firstRows(1_000)),
  },
}

/** Its conditions of this form compare for equality only. */
const firstRows = (count: number) => ({
  bodies: [{ sort_by: { field: 'id', direction: 'asc' }, limit: count }],
  where: `id <= ${count}`,
})

async function start(bench: Bench): Promise<Running> {
  const folder = await createTemporaryFolder()
  bench.after(() => removeFolder(folder))
  const config = path.join(folder, 'config.yaml')
  // YAML that is JSON too.
  await writeFile(config, JSON.stringify(configOf(bench.service.databaseUrl)))
  const port = await freePort()
  const running = await startServing(PROGRAM, ['--config', config, '--port', `${port}`, 'server'], {
    url: `http://127.0.0.1:${port}`,
    ready: '/ping',
    cwd: folder,
    env: { RUST_LOG: 'error', ATHENA_TRACING_LOG_DIR: folder },
  })
  bench.after(running.stop)
  return running
}

const configOf = (databaseUrl: string) => ({
  urls: [],
  hosts: [],
  api: [],
  authenticator: [],
  postgres_clients: [{ [CLIENT]: databaseUrl }],
})

type Reads = { readonly bodies: readonly object[]; readonly where: string }

function rows({ url }: Running, { service }: Bench, { bodies, where }: Reads): CheckedLoad {
  const requests = bodies.map((body) => ({
    method: 'POST',
    path: '/gateway/fetch',
    body: JSON.stringify({ table_name: 'bench_rows', ...body }),
  }))
  const load = { url, headers: HEADERS, requests, connections: CONNECTIONS }
  const [request = { path: '/' }] = requests
  return {
    load,
    async check() {
      const { data } = (await answerTo(load, request)) as { data: unknown }
      const expected = `select * from bench_rows where ${where} order by id`
      assertSameRows(data, await rowsOf(service.databaseUrl, expected))
    },
  }
}
