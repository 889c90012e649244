/**
 * Measures the latency and failures of requests to a Cassandra ring while nodes die and freeze, and checks that no acknowledged write is
 * lost. Runs three nodes on the loopback (127.0.0.1 to 127.0.0.3, 1.1 GB each) with three replicas, and reads and writes at LOCAL_QUORUM.
 * One node is killed with -9 and restarted, then one is frozen (SIGSTOP) and resumed, then both at once, which leaves no quorum. Needs
 * `npm run cassandra`. `node bench/cassandra-ring.ts [FACTOR]` takes seven minutes; FACTOR makes the phases longer.
 */

import { randomBytes } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'cassandra-driver'
import { HEADER } from '#kernel/http/header-names.ts'
import { type CassandraNode, startNode } from '#test/cassandra/node.ts'
import { freePort } from '#test/free-port.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'
import { createTemporaryFolder } from '#test/temporary-folder.ts'
import { atRate, ms, quantile, type Sample, type Send } from './measure.ts'

const LENGTH = Number(process.argv[2] ?? 1)
/** Requests per second of each kind. It is low because the machine also runs three servers. */
const RATE = 15
const PARTS = 50
const ADDRESSES = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const
/** One third of the ring for each node. */
const TOKENS = ['-9223372036854775808', '-3074457345618258603', '3074457345618258602'] as const
/** Requests above this time, in milliseconds, count as delayed. A statement takes a few milliseconds. */
const DELAYED = 1_000

/** Status of a request whose connection the service closed. */
const NO_ANSWER = 0

type Kind = 'insert' | 'upsert' | 'fetch' | 'other client'
type Stamped = Sample & { readonly kind: Kind }
/** A row whose write the service has acknowledged. */
type Row = { readonly part: number; readonly id: number; readonly body: string }

const acknowledged: Row[] = []
const doubtful = { count: 0 }

const home = await createTemporaryHome()
const folder = await createTemporaryFolder()
const nodes: (CassandraNode | undefined)[] = []
const [port, storagePort] = [await freePort(), await freePort()]
const adminKey = randomBytes(16).toString('hex')
try {
  await ringStarts()
  const program = await startProgram(home.folder, {
    SERVICE_KEY_12: adminKey,
    SERVICE_CLIENTS__RING__DRIVER: 'scylladb',
    SERVICE_CLIENTS__RING__URL: `scylladb://${ADDRESSES.join()}:${port}/ring`,
  })
  try {
    await run(program.url)
  } finally {
    const failures = program
      .output()
      .split('\n')
      .filter((line) => line.includes('"level":"error"'))
    if (failures.length > 0) console.log(`errors in the log: ${failures.length}, first:\n${failures[0]}`)
    await program.end('SIGTERM')
  }
} finally {
  for (const node of nodes) await node?.kill()
  await rm(folder, { recursive: true, force: true })
  await home.remove()
}

async function run(url: string): Promise<void> {
  const sends = sendersTo(url)
  const phase = (name: string, seconds: number) => measured(name, seconds * LENGTH, sends)
  await phase('warming up', 10)
  await phase('all nodes', 15)

  await nodes[1]?.kill()
  await phase('one killed', 30)
  await start(1)
  await phase('restarted', 15)

  nodes[2]?.process.kill('SIGSTOP')
  await phase('one frozen', 40)
  nodes[2]?.process.kill('SIGCONT')
  await phase('resumed', 15)

  await nodes[1]?.kill()
  nodes[2]?.process.kill('SIGSTOP')
  await phase('one killed, one frozen', 40)
  nodes[2]?.process.kill('SIGCONT')
  const resumed = performance.now()
  while ((await sends.insert()).status !== 200) await sleep(50)
  console.log(`first 200 after the frozen node resumed: ${ms(performance.now() - resumed)}`)
  await start(1)
  await phase('all nodes again', 15)

  const lost = await missing(url)
  console.log(
    `acknowledged writes: ${acknowledged.length}, unknown outcome: ${doubtful.count}, lost: ${lost.length}`,
  )
  if (lost.length > 0) {
    console.log(lost.slice(0, 10))
    process.exitCode = 1
  }
}

async function ringStarts(): Promise<void> {
  for (const index of [0, 1, 2]) await start(index)
  const client = new Client({
    contactPoints: [...ADDRESSES],
    localDataCenter: 'datacenter1',
    protocolOptions: { port },
  })
  for (const text of [
    `create keyspace ring with replication = { 'class': 'SimpleStrategy', 'replication_factor': 3 }`,
    'create table ring.notes (part int, id int, body text, primary key (part, id))',
  ])
    await client.execute(text)
  await client.shutdown()
}

async function start(index: number): Promise<void> {
  const [address = '', token = ''] = [ADDRESSES[index], TOKENS[index]]
  const own = path.join(folder, address)
  await mkdir(own, { recursive: true })
  const began = performance.now()
  nodes[index] = await startNode({
    folder: own,
    address,
    port,
    storagePort,
    seed: ADDRESSES[0],
    settings: {
      initial_token: `"${token}"`,
      auto_bootstrap: 'false',
      concurrent_writes: 8,
      concurrent_reads: 8,
    },
    flags: [],
    readyAt: 'Starting listening for CQL clients',
  })
  console.log(`${address} accepts statements after ${((performance.now() - began) / 1_000).toFixed(0)} s`)
}

function sendersTo(url: string): Readonly<Record<Kind, Send>> {
  let next = 0
  const write =
    (more: (body: string) => object): Send =>
    async () => {
      const id = next++
      const row = { part: id % PARTS, id, body: randomBytes(50).toString('hex') }
      const body = { table_name: 'notes', insert_body: row, ...more(row.body) }
      const sample = await post(url, 'PUT', '/gateway/insert', body)
      if (sample.status === 200) acknowledged.push(row)
      else if (sample.status === 502 || sample.status === 504) doubtful.count++
      return sample
    }
  return {
    insert: write(() => ({})),
    upsert: write((body) => ({ on_conflict: ['part', 'id'], update_body: { body } })),
    fetch: () => post(url, 'POST', '/gateway/fetch', readOf(acknowledged.at(-1) ?? { part: 0, id: 0 })),
    'other client': () => post(url, 'POST', '/gateway/query', { query: 'select 1' }, 'default'),
  }
}

function readOf({ part, id }: Pick<Row, 'part' | 'id'>): object {
  const conditions = Object.entries({ part, id }).map(([column, value]) => ({ column, value }))
  return { table_name: 'notes', conditions }
}

async function post(
  url: string,
  method: string,
  route: string,
  body: object,
  client = 'ring',
): Promise<Sample> {
  const began = performance.now()
  const status = await fetch(`${url}${route}`, {
    method,
    headers: { apikey: adminKey, [HEADER.client]: client, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).then(
    async (answer) => {
      await answer.arrayBuffer()
      return answer.status
    },
    () => NO_ANSWER,
  )
  return { took: performance.now() - began, status, headers: {} }
}

async function measured(name: string, seconds: number, sends: Readonly<Record<Kind, Send>>): Promise<void> {
  const kinds = Object.keys(sends) as Kind[] // the keys of the record type
  const samples = await Promise.all(
    kinds.map(async (kind) =>
      (await atRate(sends[kind], RATE, seconds)).map((sample): Stamped => ({ ...sample, kind })),
    ),
  )
  console.log(`\n${name}, ${seconds} s`)
  for (const [index, kind] of kinds.entries())
    console.log(`  ${kind.padEnd(13)} ${summaryOf(samples[index] ?? [])}`)
}

function summaryOf(samples: readonly Stamped[]): string {
  const statuses = Map.groupBy(samples, ({ status }) => status)
  const counts = [...statuses]
    .sort(([one], [other]) => one - other)
    .map(([status, of]) => `${status}: ${of.length}`)
  const delayed = samples.filter(({ took }) => took > DELAYED).length
  const longest = Math.max(...samples.map(({ took }) => took))
  return `${counts.join(', ')}; p50 ${ms(quantile(samples, 0.5))}, p99 ${ms(quantile(samples, 0.99))}, longest ${ms(longest)}, ${delayed} above a second`
}

/** Reads all acknowledged rows through the gateway, and returns the missing ones. */
async function missing(url: string): Promise<Row[]> {
  const lost: Row[] = []
  for (const row of acknowledged) {
    const answer = await fetch(`${url}/gateway/fetch`, {
      method: 'POST',
      headers: { apikey: adminKey, [HEADER.client]: 'ring', 'content-type': 'application/json' },
      body: JSON.stringify(readOf(row)),
    })
    const { data } = (await answer.json()) as { readonly data?: readonly Row[] }
    if (data?.[0]?.body !== row.body) lost.push(row)
  }
  return lost
}
