import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { empty, perform, settle } from './acts.ts'
import { INJECT } from './faults.ts'
import { openPage, type Page, partOf } from './page.ts'
import type { Plan } from './plan.ts'
import { crowdOf, subscribersOf } from './subscribers.ts'
import { allAnswer, type World } from './world.ts'

/** Milliseconds in which a page has to show the rows of a fetch, once everything is quiet. */
const PATIENCE = 60_000

/**
 * Six writers beside sixteen pages, or five hundred. At each quiet point every page shows the rows of a fetch of its caller, and no event has told what its caller
 * may not see. Throws otherwise. Returns how often each event came.
 */
export async function play(
  world: World,
  { bursts, seed, crowd }: Plan,
): Promise<Readonly<Record<string, number>>> {
  await empty(world)
  const subscribers = [...subscribersOf(world.people), ...crowdOf(world.people, crowd)]
  const pages = subscribers.map((one, index) => openPage(world, one, seed + index))
  try {
    await quiet(world, pages)
    for (const burst of bursts) {
      await write(world, pages, burst)
      await settle(world)
      await quiet(world, pages)
    }
    return summed(pages)
  } finally {
    await Promise.all(pages.map((page) => page.close()))
  }
}

async function write(world: World, pages: readonly Page[], { writers, faults }: Plan['bursts'][number]) {
  let done = 0
  let injected: Promise<unknown> = Promise.resolve()
  const left = [...faults]
  const injectDue = () => {
    for (let [next] = left; next !== undefined && next.after <= done; [next] = left) {
      const { name, whom } = next
      left.shift()
      injected = injected.then(() => INJECT[name](world, pages, whom))
      // It fails the run when it is awaited.
      injected.catch(() => {})
    }
  }
  injectDue()
  await Promise.all(
    writers.map(async (acts) => {
      for (const act of acts) {
        await perform(world, act, pages)
        done++
        injectDue()
      }
    }),
  )
  await injected
  for (const page of pages) page.release()
}

async function quiet(world: World, pages: readonly Page[]): Promise<void> {
  await allAnswer(world)
  for (const page of pages) {
    const until = performance.now() + PATIENCE
    for (;;) {
      const difference = await differenceOf(world, page)
      assert.deepEqual(page.faults, [], `${page.subscriber.name}: ${page.recent.join('\n')}`)
      if (difference === undefined) break
      assert.ok(
        performance.now() < until,
        `${page.subscriber.name}: ${difference}\n${JSON.stringify(page.counts)}\n${page.recent.join('\n')}`,
      )
      await sleep(20)
    }
  }
}

/** Undefined when the page shows what a fetch returns. */
async function differenceOf(
  { ask, callers }: World,
  { subscriber, rows }: Page,
): Promise<string | undefined> {
  // The stream may have a token that lives, and this one's be over.
  await callers[subscriber.caller].renew?.()
  for (const { table_name, ...asked } of subscriber.tables) {
    const all = { sort_by: { field: 'id' }, limit: 10_000 }
    const fetched =
      subscriber.route === undefined
        ? await ask(subscriber.caller, 'POST', '/gateway/fetch', { table_name, ...asked, ...all })
        : await ask(subscriber.caller, 'POST', `/public/${subscriber.route}/fetch`, {
            ...partOf(subscriber),
            ...all,
          })
    const [shown, wanted] = [JSON.stringify(rows(table_name)), JSON.stringify(fetched?.body.data)]
    if (fetched?.status !== 200) return `the fetch failed: ${fetched?.text}`
    if (shown !== wanted) return `${table_name} shows ${shorter(shown)} and not ${shorter(wanted)}`
  }
  return undefined
}

const shorter = (text: string | undefined): string | undefined =>
  text?.replaceAll(/x{50,}/g, 'x…').slice(0, 3_000)

function summed(pages: readonly Page[]): Readonly<Record<string, number>> {
  const sums: Record<string, number> = {}
  for (const { counts } of pages)
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
  return sums
}
