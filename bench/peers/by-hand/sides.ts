import path from 'node:path'
import { answerTo, assertSameRows, rowsOf } from '../../answers.ts'
import { answers, CONNECTIONS, ids } from '../../loads.ts'
import { startPeer } from '../../peer.ts'
import type { Bench } from '../../scenario.ts'
import { httpSide } from '../../sides.ts'
import type { Side } from '../../turns.ts'

const start = async ({ after }: Bench, program: string, args: readonly string[]) => {
  const peer = await startPeer(path.join(import.meta.dirname, program), args)
  after(peer.stop)
  return peer
}

/** The hash of the service behind node:http. */
export async function hashSide(bench: Bench, name: string, route: 'verify' | 'hash'): Promise<Side> {
  const { url, pid } = await start(bench, 'hash.ts', [])
  const request = { method: 'POST', path: `/${route}` }
  const checked = await answers({ url, requests: [request], connections: CONNECTIONS })
  return httpSide(bench.loader, {
    name,
    pid,
    about: 'node:http; the same cost of the hash, as many at once; no database',
    ...checked,
  })
}

const PATHS = { row: '/row', rows100: '/rows/100', rows1000: '/rows/1000' }

/** Fastify and pg without authentication. */
export async function byHandSide(
  bench: Bench,
  what: keyof typeof PATHS,
  name = 'Fastify and pg by hand',
): Promise<Side> {
  const { databaseUrl } = bench.service
  const { url, pid } = await start(bench, 'rows.ts', [databaseUrl])
  const paths = what === 'row' ? ids.map((id) => `${PATHS.row}/${id}`) : [PATHS[what]]
  const requests = paths.map((path) => ({ path }))
  const load = { url, requests, connections: CONNECTIONS }
  const where = what === 'row' ? `id = ${ids[0]}` : `id <= ${PATHS[what].split('/').at(-1)}`
  return httpSide(bench.loader, {
    name,
    pid,
    load,
    about: 'no authentication, no rights, no log; prepared statements on ten connections',
    async check() {
      const [request = { path: '/' }] = requests
      assertSameRows(
        await answerTo(load, request),
        await rowsOf(databaseUrl, `select * from bench_rows where ${where}`),
      )
    },
  })
}
