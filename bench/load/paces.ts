import { setTimeout as sleep } from 'node:timers/promises'
import { quantile } from '../statistics.ts'
import type { Order, Result, Times } from './load.ts'
import { openSlots, type Slot } from './slots.ts'

type Outcome = Omit<Result, 'processor'>

/** The shortest time that a timer waits, in milliseconds. Each answer in between also sends what is due. */
const TICK = 1

/** Each connection sends the next request when its answer has come. */
export async function performFlatOut({ load, seconds }: Order): Promise<Outcome> {
  let until = Number.POSITIVE_INFINITY
  const { slots, tally, hasMore, send, close } = await openSlots(load, (slot) => sendNext(slot))
  const sendNext = (slot: Slot) => {
    const now = performance.now()
    if (now < until && hasMore()) send(slot, now)
  }
  const began = performance.now()
  until = began + seconds * 1_000
  for (const slot of slots) sendNext(slot)
  while (performance.now() < until && (hasMore() || slots.some(({ isBusy }) => isBusy))) await sleep(TICK)
  await close()
  return { ...tally, seconds: (lastAnswer(slots) - began) / 1_000 }
}

/** Not the end of the waiting, which comes up to a tick later. */
const lastAnswer = (slots: readonly Slot[]): number => Math.max(...slots.map(({ freeSince }) => freeSince))

/** Requests are due at constant intervals. One that finds no free connection waits, and its waiting is part of its latency. */
export async function performAtRate({ load, seconds }: Order, rate: number): Promise<Outcome> {
  const [latencies, lags]: [number[], number[]] = [[], []]
  const idle: Slot[] = []
  const total = Math.floor(rate * seconds)
  let [began, due] = [Number.POSITIVE_INFINITY, 0]
  const { slots, tally, hasMore, send, close } = await openSlots(load, (slot) => {
    if (slot.intended > 0) latencies.push(slot.freeSince - slot.intended)
    idle.push(slot)
    sendDue()
  })
  const sendDue = () => {
    const now = performance.now()
    while (due < total && hasMore() && now >= began + (due * 1_000) / rate) {
      const slot = idle.shift()
      if (slot === undefined) return
      const intended = began + (due++ * 1_000) / rate
      lags.push(now - Math.max(intended, slot.freeSince))
      send(slot, intended)
    }
  }
  idle.push(...slots)
  began = performance.now()
  const until = began + seconds * 1_000
  while (performance.now() < until) {
    sendDue()
    await sleep(TICK)
  }
  await close()
  return {
    ...tally,
    seconds: (performance.now() - began) / 1_000,
    latency: timesOf(latencies),
    lag: timesOf(lags),
  }
}

const timesOf = (values: readonly number[]): Times => ({
  p50: quantile(values, 0.5),
  p99: quantile(values, 0.99),
})
