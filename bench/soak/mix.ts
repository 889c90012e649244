import assert from 'node:assert/strict'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import type { Load, Request } from '../load/load.ts'
import { type CheckedLoad, cachedSession, firstRows, insertRow, rowByGet, rowByPost } from '../loads.ts'
import { passwordSignIns } from '../loads-of-passwords.ts'
import { startPeer } from '../peer.ts'
import { callAdmin, type Service, type Settings } from '../service.ts'
import { createRandom } from '../statistics.ts'

const LARGE = 20_000
/** Rows that a run of the pipeline copies. */
const COPIED = 500

/** The receiver of the webhook is on this machine. */
export const SETTINGS: Settings = {
  SERVICE_GATEWAY__MAX_ROWS: `${LARGE}`,
  SERVICE_OUTBOUND__ALLOW_HTTP: 'true',
  SERVICE_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
}

const TABLES = `
create table soak_told (like bench_inserted including all);
create table soak_source as select id, name, price, created_at from bench_rows where id <= ${COPIED};
create table soak_sink (like soak_source)`

const TOLD = 'insert with a webhook'

/** Of a thousand requests. A sign-in costs as much as two hundred cached sessions, so there is one in a hundred. */
const SHARES: Readonly<Record<string, number>> = {
  'get-session': 400,
  'row by key, POST': 250,
  'row by key, GET': 105,
  '100 rows': 100,
  insert: 100,
  [TOLD]: 30,
  'sign-in': 10,
  pipeline: 2,
  [`${LARGE} rows`]: 3,
}

type Kind = Pick<CheckedLoad, 'check'> & {
  readonly load: Pick<Load, 'requests'> & Partial<Pick<Load, 'headers'>>
}

export type Mix = {
  readonly load: Omit<Load, 'connections'>
  /** Compares an answer of each kind with the database. */
  check(): Promise<void>
  /** Webhooks that are missing of so many inserts, after a wait for the last. */
  undelivered(inserts: number): Promise<number>
  close(): Promise<void>
}

/** Requests of every kind in their shares, in an order that the seed gives. */
export async function openMix(service: Service, seed: number): Promise<Mix> {
  await service.sql(TABLES)
  const receiver = await startPeer(path.join(import.meta.dirname, '../peers/by-hand/webhook-receiver.ts'))
  await addWebhook(service, receiver.url)
  const inserts = insertRow(service)
  const kinds: Readonly<Record<string, Kind>> = {
    'get-session': await cachedSession(service),
    'row by key, POST': rowByPost(service),
    'row by key, GET': rowByGet(service),
    '100 rows': firstRows(service, 100),
    insert: inserts,
    [TOLD]: {
      load: { ...inserts.load, requests: inserts.load.requests.map(toldInstead) },
      check: async () => {},
    },
    'sign-in': await passwordSignIns(service.url),
    pipeline: pipelineRuns(service),
    [`${LARGE} rows`]: firstRows(service, LARGE),
  }
  return {
    load: { url: service.url, requests: shuffled(Object.entries(kinds).flatMap(sharesOf), seed) },
    async check() {
      for (const { check } of Object.values(kinds)) await check()
    },
    undelivered: (expected) => missingAt(receiver.url, expected),
    close: receiver.stop,
  }
}

async function addWebhook(service: Service, url: string): Promise<void> {
  const asked = { route_key: 'gateway_insert', table_name: 'public.soak_told', url, client_name: 'default' }
  const answer = await callAdmin(service, '/admin/webhooks', asked)
  if (!answer.ok) throw new Error(await answer.text())
}

const toldInstead = ({ body = '', ...request }: Request): Request => ({
  ...request,
  body: body.replace('bench_inserted', 'soak_told'),
})

function pipelineRuns({ headers, databaseUrl }: Service): Kind {
  const body = JSON.stringify({ source: { table_name: 'soak_source' }, sink: { table_name: 'soak_sink' } })
  return {
    load: { headers, requests: [{ method: 'POST', path: '/pipelines', body }] },
    /** Every run has copied every row. */
    check: () =>
      withClient(databaseUrl, async (db) => {
        const { rows } = await db.query(
          `select distinct count(*) over (partition by id)::int as copies, count(*) over ()::int % ${COPIED} as rest from soak_sink`,
        )
        assert.ok(rows.length === 0 || (rows.length === 1 && rows[0].rest === 0), JSON.stringify(rows))
      }),
  }
}

/** As many requests as the share says, which begin again where the kind has fewer. */
function sharesOf([kind, { load }]: readonly [string, Kind]): readonly Request[] {
  const { headers = {}, requests } = load
  return Array.from({ length: SHARES[kind] ?? 0 }, (_, index) => {
    const request = requests[index % requests.length]
    if (request === undefined) throw new Error(`${kind} has no requests`)
    return { ...request, headers: { ...headers, ...request.headers }, kind }
  })
}

function shuffled<T>(list: readonly T[], seed: number): readonly T[] {
  const random = createRandom(seed)
  return list
    .map((item) => ({ item, at: random() }))
    .sort((left, right) => left.at - right.at)
    .map(({ item }) => item)
}

/** The last deliveries come within seconds. */
const PATIENCE = 30_000

async function missingAt(receiver: string, expected: number): Promise<number> {
  const received = async () => Number(await (await fetch(`${receiver}/count`)).text())
  const until = performance.now() + PATIENCE
  while ((await received()) < expected && performance.now() < until) await sleep(100)
  return Math.max(0, expected - (await received()))
}

/** Inserts that a webhook tells of. */
export const toldIn = (kinds: Readonly<Record<string, number>>): number => kinds[TOLD] ?? 0
