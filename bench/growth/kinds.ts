import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { answerTo } from '../answers.ts'
import type { Load, Request } from '../load/load.ts'
import { CONNECTIONS } from '../loads.ts'
import type { Bench } from '../scenario.ts'
import { ourSide } from '../sides.ts'
import { inTurns, type Side } from '../turns.ts'
import { dropFromCaches } from './fill.ts'
import type { Curve } from './results.ts'

/** A kind of request whose cost is measured at each size. */
export type Subject = Pick<Curve, 'title' | 'of'> &
  Partial<Pick<Curve, 'from' | 'compared'>> & {
    /** Where the run has more rows, there are no more of these. */
    readonly most?: number
    side(size: number): Side
  }

export type Headers = Readonly<Record<string, string>>

/** What the requests are at a size. */
type Requests = (size: number) => readonly Request[]

/** The same requests over and over. */
export const repeated =
  (bench: Bench, title: string, headers: Headers, requestsOf: Requests) =>
  (size: number): Side => {
    const load = { url: bench.service.url, headers, requests: requestsOf(size), connections: CONNECTIONS }
    return ourSide(bench, { name: title, load, check: () => expectSuccess(load) })
  }

/** Each round goes on where the last one has ended, so that no caller has many of them. */
export const rotated =
  (bench: Bench, title: string, headers: Headers, requestsOf: Requests, many: number) =>
  (size: number): Side => {
    const requests = requestsOf(size)
    let begun = 0
    const load = async (): Promise<Load> => {
      const next = inTurns(requests, begun++ * many)
      return { url: bench.service.url, headers, requests: next, connections: CONNECTIONS }
    }
    return ourSide(bench, { name: title, load, check: async () => {} })
  }

/** A request, and the tag under which caches have what it needs. */
export type Tagged = Request & { readonly tag: string }

/** Each request once after the caches have dropped what it needs, so that every one of them reads the database. */
export const uncached =
  (bench: Bench, title: string, headers: Headers, requestsOf: (size: number) => readonly Tagged[]) =>
  (size: number): Side => {
    const { url, controlUrl } = bench.service
    const requests = requestsOf(size)
    const load = { url, headers, requests, connections: CONNECTIONS, once: true }
    const side = ourSide(bench, {
      name: title,
      load: async () => {
        await dropFromCaches(
          controlUrl,
          requests.map(({ tag }) => tag),
        )
        // The processes hear of it within this time.
        await sleep(50)
        return load
      },
      check: () => expectSuccess(load),
    })
    return { ...side, work: () => side.work(PATIENCE) }
  }

/** Seconds, within which all requests of a round have their answers. */
const PATIENCE = 30

/** A list whose answer has at least so many entries. */
export type List = { readonly paths: readonly string[]; readonly member: string; readonly entries: number }

export const list =
  (bench: Bench, title: string, headers: Headers, { paths, member, entries }: List) =>
  (): Side => {
    const requests = paths.map((path) => ({ path }))
    const load = { url: bench.service.url, headers, requests, connections: CONNECTIONS }
    return ourSide(bench, { name: title, load, check: () => expectEntries(load, member, entries) })
  }

/** The side, whose work ends when what it has begun is done. */
export const until = (done: () => Promise<void>, side: Side): Side => ({
  ...side,
  async work(seconds) {
    const work = await side.work(seconds)
    await done()
    return work
  },
})

const firstOf = ({ requests }: Load): Request => requests[0] ?? { path: '/' }

const expectSuccess = async (load: Load): Promise<void> => void (await answerTo(load, firstOf(load)))

async function expectEntries(load: Load, member: string, entries: number): Promise<void> {
  const answer = await answerTo(load, firstOf(load))
  const found = member.split('.').reduce((value, name) => Reflect.get(Object(value), name), answer)
  assert.ok(Array.isArray(found) && found.length >= entries, `${member} has fewer than ${entries} entries`)
}
