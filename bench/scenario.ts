import type { Loader } from './load/loader.ts'
import type { Server } from './server.ts'
import type { Service, Settings } from './service.ts'
import type { Side } from './turns.ts'

/** What a scenario works with. */
export type Bench = {
  readonly server: Server
  readonly service: Service
  readonly loader: Loader
  /** Registers what is undone after the scenario, in reverse order. */
  after(clean: () => Promise<void>): void
}

/**
 * The one binding target: a side's value, or its ratio to that of another side in the same round. It is met when the whole 95 % interval lies
 * on the right side of the bound.
 */
export type Target = { readonly of: string; readonly against?: string } & (
  | { readonly atLeast: number }
  | { readonly atMost: number }
)

/** What a peer can be compared in. */
export type PeerWork = 'session' | 'signIn' | 'signUp' | 'row' | 'rows100' | 'rows1000'

export type Scenario = {
  readonly title: string
  /** What the value of a turn is: `requests per second`, `ms`, `MiB`. */
  readonly unit: string
  /** Of the service, by the URL of the client's database. */
  readonly settings?: (databaseUrl: string) => Settings
  readonly target?: Target
  /** Uncounted turns, where those of the plan are too few: V8 compiles for some 50,000 requests. */
  readonly warmUp?: number
  /** Whether the latency at constant rates is measured as well. */
  readonly hasLatency?: boolean
  /** The sides, ours first. */
  open(bench: Bench): Promise<readonly Side[]>
  /** What peers are compared in. */
  readonly peers?: PeerWork
}
