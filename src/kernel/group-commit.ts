/**
 * Runs work on as many items as have been asked for while the run before was under way, at most `most`: many callers at once
 * cost few runs, and one alone waits for none. The results stand in the order of the items.
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
