import type { HookPoint } from '../config/sections/auth-hooks.ts'
import type { OutboundAnswer } from '../http/outbound/outbound.ts'

/** The members that a hook adds. Names and values are judged where they are used. */
export type HookAnswer = {
  readonly fields?: Readonly<Record<string, unknown>>
  readonly claims?: Readonly<Record<string, unknown>>
}

/** A call that has failed, or an answer that does not fit. The message is ours: it has nothing of an answer. */
export class HookProblem extends Error {}

/**
 * The hook was not asked, or not to the end, for a reason that is not its own. It refuses whatever `on_failure` says: else callers could
 * bring it about to evade the hook.
 */
export class HookUnasked extends HookProblem {}

/** The hook refuses. */
export class HookRefusal extends Error {
  readonly hook: string
  /** For the caller; undefined when the hook gives none that can be shown. */
  readonly says: string | undefined
  constructor(hook: string, says: string | undefined) {
    super(`the hook ${hook} refuses`)
    this.hook = hook
    this.says = says
  }
}

/** Largest answer that is read, bytes. */
export const MAX_ANSWER = 65_536

/** The member that an answer may have besides `decision`. */
const ADDS: Readonly<Record<HookPoint, keyof HookAnswer | undefined>> = {
  sign_up: 'fields',
  sign_in: undefined,
  token: 'claims',
}

/** Reads an answer; throws `HookRefusal` or `HookProblem`. An unknown member may be meant as a refusal, so that it does not fit. */
export function readAnswer(
  hook: string,
  point: HookPoint,
  { status, isWhole, body }: OutboundAnswer,
): HookAnswer {
  if (status !== 200) throw new HookProblem(`it answered ${status}`)
  if (!isWhole) throw new HookProblem(`its answer has more than ${MAX_ANSWER} bytes`)
  const { decision = 'allow', message, ...added } = parsed(body)
  if (decision === 'refuse') throw new HookRefusal(hook, shownMessage(message))
  if (decision !== 'allow') throw new HookProblem('its decision is neither allow nor refuse')
  const unknown = Object.entries(added).some(([name, value]) => name !== ADDS[point] || !isObject(value))
  if (unknown || message !== undefined)
    throw new HookProblem(`its answer has a member that ${point} does not take`)
  // One member at most, an object.
  return added as HookAnswer
}

function parsed(body: Buffer): Readonly<Record<string, unknown>> {
  let answer: unknown
  try {
    answer = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    // The error would quote the answer.
  }
  if (!isObject(answer)) throw new HookProblem('its answer is not a JSON object')
  return answer
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** One line of plain text. */
const shownMessage = (message: unknown): string | undefined =>
  typeof message === 'string' && /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u.test(message) ? message : undefined
