import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import { CONTROL, type Ground, WORKERS } from './ground.ts'
import { KINDS, type Kind, type Sample, type Written } from './load.ts'

/** A fault that has been: its name, and when it began and was over (performance.now()). */
export type Past = {
  readonly name: string
  readonly began: number
  readonly ended: number
  readonly workers: number
}

/** What is told of one promise: the sentence, and whether it was kept. */
export type Verdict = { readonly says: string; readonly isKept: boolean }

/** Longest that any kind of request may wait for its next 200 after a fault, milliseconds. */
const RECOVERY = 15_000

/** How long after the end of a fault each kind of request had its next 200, milliseconds; infinite when it never had one. */
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
    says: `every kind of request has a 200 within ${RECOVERY / 1_000} s after each fault: ${(worst / 1_000).toFixed(1)} s`,
    isKept: worst <= RECOVERY,
  }
}

/** 502 is a statement whose end is not known; 503 and 504 say to come back; 0 is a connection to a worker that was lost. */
const HONEST = new Set([0, 200, 502, 503, 504])

export function honest(samples: readonly Sample[]): Verdict {
  const others = samples.filter(({ status }) => !HONEST.has(status))
  const counts = Map.groupBy(
    others,
    ({ kind, status }) => `${kind} ${status === -1 ? 'never answered' : status}`,
  )
  const list = [...counts].map(([what, { length }]) => `${what} (${length})`).join(', ')
  return { says: `no answer but 200, 502, 503 and 504: ${list || 'none'}`, isKept: others.length === 0 }
}

export async function nothingLost({ database }: Ground, written: Written): Promise<Verdict> {
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
    says: `no answered write is lost: ${lost.length} of ${length} sign-ups and ${written.rows.length} rows`,
    isKept: lost.length === 0,
  }
}

/** Each has arrived, or waits in the queue for its next try. */
export async function noMailLost({ database, mail }: Ground, written: Written): Promise<Verdict> {
  const missing = () => written.mails.filter((to) => !mail.recipients.has(to))
  const until = performance.now() + 40_000
  while (missing().length > 0 && performance.now() < until) await sleep(500)
  const waiting = await column(
    database.url(CONTROL),
    `select id as value from service_jobs.job where state in ('created', 'retry', 'active')`,
  )
  const { length } = missing()
  return {
    says: `no answered mail is lost: of ${written.mails.length}, ${length} have not arrived and ${waiting.size} jobs wait`,
    isKept: length <= waiting.size,
  }
}

async function dataDatabase({ url }: Ground['database']): Promise<string> {
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

export async function nobodyGone({ service }: Ground, past: readonly Past[]): Promise<Verdict> {
  const records = (await service.log()).split('\n').filter((line) => line.includes('"event":"worker_lost"'))
  const allowed = past.reduce((sum, { workers }) => sum + workers, 0)
  const workers = await service.workers()
  const isAlive = service.child.exitCode === null && service.child.signalCode === null
  return {
    says: `no process ends by itself: ${isAlive ? '' : 'the primary is gone, '}${records.length} workers replaced of ${allowed} that were hurt, ${workers.length} there`,
    isKept: isAlive && records.length <= allowed && workers.length === WORKERS,
  }
}

/** Memory of all processes together, MB, by when it was looked at. */
export type Memory = readonly { readonly at: number; readonly megabytes: number }[]

/** The last quarter against the second: the first warms up. */
export function flat(memory: Memory): Verdict {
  const quarter = (index: number) =>
    median(
      memory
        .slice((memory.length * index) / 4, (memory.length * (index + 1)) / 4)
        .map(({ megabytes }) => megabytes),
    )
  const [early, late] = [quarter(1), quarter(3)]
  return {
    says: `memory is flat: ${early.toFixed(0)} MB in the second quarter, ${late.toFixed(0)} MB in the last`,
    isKept: late <= early * 1.25,
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
