import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import { CONTROL, type Fixture, WORKERS } from './fixture.ts'
import { KINDS, type Kind, type Sample, type Written } from './load.ts'

/** An injected fault with its start and end (performance.now()). */
export type Past = {
  readonly name: string
  readonly began: number
  readonly ended: number
  readonly workers: number
}

/** Result for one guarantee: a sentence, and whether it was kept. */
export type Verdict = { readonly says: string; readonly isKept: boolean }

/** Maximum time from the end of a fault to the next 200 of each kind of request, in milliseconds. */
const RECOVERY = 15_000

/** Longest time from the end of each fault to the next 200 by kind of request, in milliseconds; infinite if there was none. */
export function recoveries(
  past: readonly Past[],
  samples: readonly Sample[],
): ReadonlyMap<string, ReadonlyMap<Kind, number>> {
  const found = new Map<string, Map<Kind, number>>()
  for (const { name, ended } of past) {
    const worst = found.get(name) ?? new Map<Kind, number>()
    found.set(name, worst)
    for (const kind of KINDS) {
      const next = samples
        .filter((sample) => sample.kind === kind && sample.status === 200 && sample.ended >= ended)
        .reduce((least, sample) => Math.min(least, sample.ended - ended), Number.POSITIVE_INFINITY)
      worst.set(kind, Math.max(worst.get(kind) ?? 0, next))
    }
  }
  return found
}

export function recovered(past: readonly Past[], samples: readonly Sample[]): Verdict {
  const worst = Math.max(
    0,
    ...[...recoveries(past, samples).values()].flatMap((kinds) => [...kinds.values()]),
  )
  return {
    says: `every kind of request succeeds within ${RECOVERY / 1_000} s after each fault: ${(worst / 1_000).toFixed(1)} s`,
    isKept: worst <= RECOVERY,
  }
}

/** 502: unknown outcome of a statement; 503 and 504: retry later; 0: the connection to a lost worker. */
const EXPECTED_STATUSES = new Set([0, 200, 502, 503, 504])

export function onlyExpectedStatuses(samples: readonly Sample[]): Verdict {
  const others = samples.filter(({ status }) => !EXPECTED_STATUSES.has(status))
  const counts = Map.groupBy(others, ({ kind, status }) => `${kind} ${status === -1 ? 'timeout' : status}`)
  const list = [...counts].map(([what, { length }]) => `${what} (${length})`).join(', ')
  return {
    says: `no responses other than 200, 502, 503 and 504: ${list || 'none'}`,
    isKept: others.length === 0,
  }
}

export async function noWriteLost({ database }: Fixture, written: Written): Promise<Verdict> {
  const [emails, numbers] = await Promise.all([
    column(database.url(CONTROL), 'select email as value from service."user"'),
    column(database.url(await dataDatabase(database)), 'select number as value from written'),
  ])
  const lost = [
    ...written.emails.filter((email) => !emails.has(email)),
    ...written.rows.filter((number) => !numbers.has(`${number}`)),
  ]
  const { length } = written.emails
  return {
    says: `no acknowledged write is lost: ${lost.length} of ${length} sign-ups and ${written.rows.length} rows`,
    isKept: lost.length === 0,
  }
}

/** Every acknowledged mail was delivered or waits in the queue for its next attempt. */
export async function noMailLost({ database, mail }: Fixture, written: Written): Promise<Verdict> {
  const missing = () => written.mails.filter((to) => !mail.recipients.has(to))
  const until = performance.now() + 40_000
  while (missing().length > 0 && performance.now() < until) await sleep(500)
  const waiting = await column(
    database.url(CONTROL),
    `select id as value from service_jobs.job where state in ('created', 'retry', 'active')`,
  )
  const { length } = missing()
  return {
    says: `no acknowledged mail is lost: of ${written.mails.length}, ${length} are not delivered and ${waiting.size} jobs wait`,
    isKept: length <= waiting.size,
  }
}

async function dataDatabase({ url }: Fixture['database']): Promise<string> {
  const names = await column(
    url('postgres'),
    `select datname as value from pg_database where datname in ('gatehouse_default', '${CONTROL}_default')`,
  )
  return [...names][0] ?? ''
}

async function column(url: string, text: string): Promise<ReadonlySet<string>> {
  const { rows } = await withClient(url, (db) => db.query(text))
  return new Set(rows.map(({ value }) => String(value)))
}

export async function noUnexpectedExit({ service }: Fixture, past: readonly Past[]): Promise<Verdict> {
  const records = (await service.log()).split('\n').filter((line) => line.includes('"event":"worker_lost"'))
  const allowed = past.reduce((sum, { workers }) => sum + workers, 0)
  const workers = await service.workers()
  const isAlive = service.child.exitCode === null && service.child.signalCode === null
  return {
    says: `no process exits unexpectedly: ${isAlive ? '' : 'the primary has exited, '}${records.length} workers replaced after ${allowed} faults on workers, ${workers.length} running`,
    isKept: isAlive && records.length <= allowed && workers.length === WORKERS,
  }
}

/** Total memory of all processes in MB, by time of measurement. */
export type Memory = readonly { readonly at: number; readonly megabytes: number }[]

/** Compares the last quarter to the second; the first is warm-up. */
export function stableMemory(memory: Memory): Verdict {
  const quarter = (index: number) =>
    median(
      memory
        .slice((memory.length * index) / 4, (memory.length * (index + 1)) / 4)
        .map(({ megabytes }) => megabytes),
    )
  const [early, late] = [quarter(1), quarter(3)]
  return {
    says: `memory does not grow: ${early.toFixed(0)} MB in the second quarter, ${late.toFixed(0)} MB in the last`,
    isKept: late <= early * 1.25,
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
