import { Agent, request } from 'node:http'

/** One response: its duration in milliseconds and its status. */
export type Sample = {
  readonly took: number
  readonly status: number
  readonly headers: Record<string, unknown>
}

export type Send = () => Promise<Sample>

/** Returns a function that sends a request over keep-alive connections. */
export function sender(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: () => string; connections: number },
): Send {
  const { method = 'GET', headers = {}, body, connections } = options
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  return () =>
    new Promise((resolve, reject) => {
      const began = performance.now()
      const sent = request(url, { agent, method, headers }, (response) => {
        response.resume().on('end', () => {
          resolve({
            took: performance.now() - began,
            status: response.statusCode ?? 0,
            headers: response.headers,
          })
        })
      })
      sent.on('error', reject).end(body?.())
    })
}

/** Sends requests at a constant rate, independent of the responses, so that queueing delays are measured as callers see them. */
export async function atRate(send: Send, perSecond: number, seconds: number): Promise<Sample[]> {
  const began = performance.now()
  const running: Promise<Sample>[] = []
  while (performance.now() - began < seconds * 1_000) {
    const due = ((performance.now() - began) / 1_000) * perSecond
    while (running.length < due) running.push(send())
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Promise.all(running)
}

/**
 * Sends as many requests as `parallel` sequential callers can. Callers respect Retry-After, because immediate retries would only use up the
 * CPU of the load generator.
 */
export async function flatOut(send: Send, parallel: number, seconds: number): Promise<Sample[]> {
  const until = performance.now() + seconds * 1_000
  const samples: Sample[] = []
  const caller = async () => {
    while (performance.now() < until) {
      const sample = await send()
      samples.push(sample)
      const wait = Number(sample.headers['retry-after'] ?? 0)
      // Random, as with independent callers.
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait * 1_000 * (1 + Math.random())))
    }
  }
  await Promise.all(Array.from({ length: parallel }, caller))
  return samples
}

export function quantile(samples: readonly Sample[], share: number): number {
  const sorted = samples.map(({ took }) => took).sort((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const ms = (value: number): string => `${value.toFixed(2)} ms`
