/**
 * Collects the items that arrive while a run is under way, and hands them to the next run, at most `most` of them. Many concurrent
 * callers cost few runs, and a single caller waits for no other run. The results are in the order of the items.
 */
export function createGroupCommit<Item, Result>(
  most: number,
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
): (item: Item) => Promise<Result> {
  type Asked = { readonly item: Item } & PromiseWithResolvers<Result>
  const line: Asked[] = []
  let isRunning = false

  const work = async (): Promise<void> => {
    isRunning = true
    for (let asked = line.splice(0, most); asked.length > 0; asked = line.splice(0, most)) await settle(asked)
    isRunning = false
  }
  const settle = async (asked: readonly Asked[]): Promise<void> => {
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
