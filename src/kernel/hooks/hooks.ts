import type { Clock } from '../clock.ts'
import type { Config } from '../config/config.ts'
import type { HookPoint } from '../config/sections/auth-hooks.ts'
import { networkOf } from '../http/limits/limits.ts'
import { type Outbound, type OutboundAnswer, OutboundRefused } from '../http/outbound/outbound.ts'
import { signedHeaders } from '../http/outbound/webhook-signature.ts'
import { createKeyedSemaphore } from '../keyed-semaphore.ts'
import type { Log } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { type Random, uuidv7 } from '../random.ts'
import { VERSION } from '../version.ts'
import { type HookAnswer, HookProblem, HookRefusal, HookUnasked, MAX_ANSWER, readAnswer } from './answer.ts'

/** Signed calls of the operator's own service (decision 68). */
export type Hooks = {
  /** Whether a hook is called before it. */
  has(point: HookPoint): boolean
  /**
   * Calls the hooks of the point one after the other, and gives each answer to `take`, which throws `HookProblem` for one that does not
   * fit. Throws `HookRefusal`, and `HookProblem` for a failure of a hook that has to answer. Nothing may be held meanwhile.
   */
  ask(point: HookPoint, question: Question, take: (answer: HookAnswer) => void): Promise<void>
  /** Ends the calls that run, and all further ones: they refuse. */
  close(): Promise<void>
}

type Question = {
  readonly data: object
  /** Of the caller: each network has a share of the calls. */
  readonly address: string | undefined
}

type Places = ReturnType<typeof createKeyedSemaphore>

type Hook = Config['auth']['hooks'][string] & {
  readonly name: string
  /** A flood of sign-ups, which need no proof, takes none of the places of sign-ins. */
  readonly places: Readonly<Record<HookPoint, Places>>
}

/** Calls of one hook at once before one point, in a process. A slow hook holds no more. */
const AT_ONCE = 32
/** Further ones that wait for their turn, each for half of the hook's timeout. */
const WAITING = 256
/** One network has at most an eighth of both. */
const NETWORKS = 8

/** The parts of the kernel that hooks need. `outbound` is theirs alone. */
type Parts = {
  readonly outbound: Outbound
  readonly metrics: Metrics
  readonly now: Clock
  readonly random: Random
  readonly log: Log
}

type Calling = Omit<Parts, 'outbound'> & Pick<Outbound, 'send'>

export function createHooks(config: Config, { outbound, ...kernel }: Parts): Hooks {
  const hooks = Object.entries(config.auth.hooks).map(([name, hook]): Hook => {
    const refusal = () => new HookUnasked('too many calls wait for it')
    // It waits twice, for the share and for all. A call with less than half of the time left would fail, and `allow` would let it pass.
    const patience = hook.timeout / 4
    const createPlaces = () =>
      createKeyedSemaphore(AT_ONCE, { max: WAITING, patience, refusal, parts: NETWORKS })
    const places = { sign_up: createPlaces(), sign_in: createPlaces(), token: createPlaces() }
    return { ...hook, name, places }
  })
  let isClosed = false
  const expectOpen = () => {
    if (isClosed) throw new HookUnasked('the service stops')
  }
  const calling: Calling = {
    ...kernel,
    async send(url, request) {
      expectOpen()
      try {
        return await outbound.send(url, request)
      } catch (error) {
        expectOpen()
        throw error
      }
    },
  }
  return {
    has: (point) => hooks.some(({ on }) => on.includes(point)),
    async ask(point, question, take) {
      for (const hook of hooks.filter(({ on }) => on.includes(point)))
        await askOne(calling, hook, { ...question, point }, take)
    },
    close() {
      isClosed = true
      return outbound.close()
    },
  }
}

type Asked = Question & { readonly point: HookPoint }

async function askOne(
  kernel: Calling,
  hook: Hook,
  asked: Asked,
  take: (answer: HookAnswer) => void,
): Promise<void> {
  const began = performance.now()
  const count = (outcome: 'allowed' | 'refused' | 'failed') =>
    kernel.metrics.hook({ hook: hook.name, outcome, seconds: (performance.now() - began) / 1_000 })
  try {
    take(readAnswer(hook.name, asked.point, await inTurn(kernel, hook, asked)))
    count('allowed')
  } catch (error) {
    count(error instanceof HookRefusal ? 'refused' : 'failed')
    if (error instanceof HookRefusal) throw error
    const { name } = hook
    const refuses = hook.on_failure === 'refuse' || error instanceof HookUnasked
    const effect = refuses ? 'refuse' : 'allow'
    const facts = { event: 'hook_failed', hook: name, point: asked.point, effect, reason: reasonOf(error) }
    kernel.log.warn(facts, 'a hook gave no answer that counts')
    if (refuses) throw new HookProblem(`the hook ${name} gave no answer that counts`)
  }
}

/** The timeout is that of the whole call, with the time in which it waits for its turn. */
async function inTurn(kernel: Calling, hook: Hook, asked: Asked): Promise<OutboundAnswer> {
  const began = performance.now()
  const release = await hook.places[asked.point].acquire(networkOf(asked.address ?? ''))
  try {
    return await call(kernel, hook, asked, hook.timeout - (performance.now() - began))
  } finally {
    release()
  }
}

function call(kernel: Calling, hook: Hook, { point, data }: Asked, left: number): Promise<OutboundAnswer> {
  const now = kernel.now()
  const body = JSON.stringify({ type: `before.${point}`, timestamp: now.toISOString(), data })
  const id = `hook_${uuidv7(now, kernel.random)}`
  const timestamp = Math.floor(now.getTime() / 1_000)
  return kernel.send(hook.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': `gatehouse/${VERSION}`,
      ...signedHeaders([hook.secret], { id, timestamp, body }),
    },
    body,
    timeout: Math.max(1, Math.ceil(left)),
    maxBytes: MAX_ANSWER,
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
