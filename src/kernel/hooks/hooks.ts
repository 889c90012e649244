import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { HookPoint } from '../config/sections/auth-hooks.ts'
import { type Outbound, OutboundRefused } from '../http/outbound/outbound.ts'
import { signedHeaders } from '../http/outbound/webhook-signature.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { type Random, uuidv7 } from '../random.ts'
import { createSemaphore, type Semaphore } from '../semaphore.ts'
import { VERSION } from '../version.ts'
import { type HookAnswer, HookProblem, HookRefusal, MAX_ANSWER, readAnswer } from './answer.ts'

/** Signed calls of the operator's own service (decision 68). */
export type Hooks = {
  /** Whether a hook is called before it. */
  has(point: HookPoint): boolean
  /**
   * Calls the hooks of the point one after the other, and gives each answer to `take`, which throws `HookProblem` for one that does not
   * fit. Throws `HookRefusal`, and `HookProblem` for a failure of a hook that has to answer. Nothing may be held meanwhile.
   */
  ask(point: HookPoint, data: object, take: (answer: HookAnswer) => void): Promise<void>
}

type Hook = Config['auth']['hooks'][string] & { readonly name: string; readonly places: Semaphore }

/** Calls of one hook at once, in a process. A slow hook holds no more. */
const AT_ONCE = 32
/** Further ones that wait for their turn, each for the timeout of the hook. */
const WAITING = 256

/** The parts of the kernel that a call needs. */
type Calling = {
  readonly outbound: Outbound
  readonly metrics: Metrics
  readonly now: Clock
  readonly random: Random
  readonly log: Log
}

export function createHooks(config: Config, kernel: Calling): Hooks {
  const hooks = Object.entries(config.auth.hooks).map(([name, hook]): Hook => {
    const refusal = () => new HookProblem('too many calls wait for it')
    return {
      ...hook,
      name,
      places: createSemaphore(AT_ONCE, { max: WAITING, patience: hook.timeout, refusal }),
    }
  })
  return {
    has: (point) => hooks.some(({ on }) => on.includes(point)),
    async ask(point, data, take) {
      for (const hook of hooks.filter(({ on }) => on.includes(point)))
        await askOne(kernel, hook, point, data, take)
    },
  }
}

async function askOne(
  kernel: Calling,
  hook: Hook,
  point: HookPoint,
  data: object,
  take: (answer: HookAnswer) => void,
): Promise<void> {
  const began = performance.now()
  const count = (outcome: 'allowed' | 'refused' | 'failed') =>
    kernel.metrics.hook({ hook: hook.name, outcome, seconds: (performance.now() - began) / 1_000 })
  try {
    take(readAnswer(hook.name, point, await call(kernel, hook, point, data)))
    count('allowed')
  } catch (error) {
    count(error instanceof HookRefusal ? 'refused' : 'failed')
    if (error instanceof HookRefusal) throw error
    const { name, on_failure } = hook
    const facts = { event: 'hook_failed', hook: name, point, on_failure, reason: reasonOf(error) }
    kernel.log.warn(facts, 'a hook gave no answer that counts')
    if (on_failure === 'refuse') throw new HookProblem(`the hook ${name} gave no answer that counts`)
  }
}

/** The timeout is that of the whole call, with the time in which it waits for its turn. */
async function call(kernel: Calling, hook: Hook, point: HookPoint, data: object) {
  const began = performance.now()
  return hook.places.run(() => {
    const left = Math.ceil(hook.timeout - (performance.now() - began))
    const now = kernel.now()
    const body = JSON.stringify({ type: `before.${point}`, timestamp: now.toISOString(), data })
    const id = `hook_${uuidv7(now, kernel.random)}`
    const timestamp = Math.floor(now.getTime() / 1_000)
    return kernel.outbound.send(hook.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': `gatehouse/${VERSION}`,
        ...signedHeaders([hook.secret], { id, timestamp, body }),
      },
      body,
      timeout: Math.max(1, left),
      maxBytes: MAX_ANSWER,
    })
  })
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the call failed'
  if (error instanceof HookProblem) return error.message
  if (error instanceof OutboundRefused) return `the address is refused: ${error.message}`
  if (error.name === 'TimeoutError') return 'it did not answer in time'
  // An attempt at several addresses of a name has one error for each.
  const first = error instanceof AggregateError && error.message === '' ? error.errors[0] : error
  return `the call failed: ${first instanceof Error ? first.message : String(first)}`
}
