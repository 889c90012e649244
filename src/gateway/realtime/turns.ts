import type { FastifyRequest } from 'fastify'
import { networkOf } from '#kernel/http/limits/limits.ts'
import type { GatewayCaller } from '../caller/caller.ts'

/** Runs one piece of work after the other. */
export function createTurns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const turn = last.then(work)
    last = turn.catch(() => {})
    return turn
  }
}

export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => void setTimeout(resolve, milliseconds).unref())

/** Streams whose readers take nothing hold up those of the same user first, and then of the same address. */
export const payersOf = ({ clientAddress }: FastifyRequest, { userId }: GatewayCaller): readonly string[] => [
  ...(userId === undefined ? [] : [`user ${userId}`]),
  `address ${networkOf(clientAddress)}`,
]
