/** How long the steps of a run have taken, in milliseconds. */
export type Times = {
  measure<T>(step: 'source' | 'sink', work: () => Promise<T>): Promise<T>
  of(step: 'source' | 'sink'): number
  /** The time of neither; 0 when they have overlapped. */
  rest(): number
}

export function createTimes(): Times {
  const began = performance.now()
  const spent = { source: 0, sink: 0 }
  return {
    async measure(step, work) {
      const start = performance.now()
      try {
        return await work()
      } finally {
        spent[step] += performance.now() - start
      }
    },
    of: (step) => Math.round(spent[step]),
    rest: () => Math.round(Math.max(0, performance.now() - began - spent.source - spent.sink)),
  }
}
