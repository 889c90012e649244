/** A request of a load. Its headers are added to those of the load. */
export type Request = {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** In a mix: what its outcomes are counted under. */
  readonly kind?: string
}

/** Requests that are sent in turn over a number of connections. */
export type Load = {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly requests: readonly Request[]
  readonly connections: number
  /** Each request is sent once, so that the run ends early when there are no more; otherwise they begin again. */
  readonly once?: boolean
}

/** With a rate, requests are sent at their times whether or not answers have come. Without one, each connection sends after its answer. */
export type Order = { readonly load: Load; readonly seconds: number; readonly rate?: number }

/** Milliseconds. */
export type Times = { readonly p50: number; readonly p99: number }

export type Result = {
  /** Answers of 2xx. */
  readonly done: number
  /** Other answers, lost connections and answers that did not come. */
  readonly failed: number
  /** What failed: numbers by status or kind of error, in a mix behind the kind of request. */
  readonly failures: Readonly<Record<string, number>>
  /** Answers of 2xx by kind of request. */
  readonly kinds: Readonly<Record<string, number>>
  readonly seconds: number
  /** Processor time of the load process, µs. */
  readonly processor: number
  /** From the intended time of sending until the answer was complete. Only with a rate. */
  readonly latency?: Times
  /** How late the load process itself was: from the intended time until it sent, or found no free connection. */
  readonly lag?: Times
}
