/**
 * Values of which `end` frees the source, also before the first one is asked for and while one is awaited. A generator does neither: one that
 * was never started ignores `return`, and its source keeps its connection.
 */
export function endable<T>(
  next: () => Promise<IteratorResult<T, undefined>>,
  end: () => Promise<unknown> | undefined,
): AsyncIterable<T, undefined> {
  const over = { done: true, value: undefined } as const
  let isOver = false
  const iterator: AsyncIterator<T, undefined> = {
    next: () => (isOver ? Promise.resolve(over) : next()),
    async return() {
      isOver = true
      await end()
      return over
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}
