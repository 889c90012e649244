import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Collects the items that arrive while a run is under way, and hands them to the next run, at most `max` of them, or as many as weigh
 * no more than `max` together; an item that weighs more has a run of its own. Many concurrent callers cost few runs, and a single caller
 * waits for no other run. The results are in the order of the items. The next run begins no earlier than `pause` milliseconds after the one
 * before: where nothing waits for the results, fewer runs have more items.
 */
export function createGroupCommit<Item, Result>(
  max: number,
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  weigh: (item: Item) => number = () => 1,
  pause = 0,
): (item: Item) => Promise<Result> {
  type QueuedItem = { readonly item: Item } & PromiseWithResolvers<Result>
  const line: QueuedItem[] = []
  let isRunning = false

  const work = async (): Promise<void> => {
    isRunning = true
    for (let asked = taken(); asked.length > 0; asked = taken()) {
      await settle(asked)
      if (pause > 0) await sleep(pause)
    }
    isRunning = false
  }
  const taken = (): readonly QueuedItem[] => {
    let weight = 0
    const beyond = line.findIndex(({ item }, at) => {
      weight += weigh(item)
      return at > 0 && weight > max
    })
    return line.splice(0, beyond === -1 ? line.length : beyond)
  }
  const settle = async (asked: readonly QueuedItem[]): Promise<void> => {
    try {
      const results = await run(asked.map(({ item }) => item))
      // One of each, as `run` promises.
      for (const [index, { resolve }] of asked.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of asked) reject(error)
    }
  }
  return (item) => {
    const asked = { item, ...Promise.withResolvers<Result>() }
    line.push(asked)
    if (!isRunning) void work()
    return asked.promise
  }
}
