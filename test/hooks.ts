import assert from 'node:assert/strict'
import type { RequestListener, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Config } from '#kernel/config/config.ts'
import { startLoopbackServer } from './loopback-server.ts'

type HookSettings = Config['auth']['hooks'][string]
type Point = 'sign_up' | 'sign_in' | 'token'

/** A call that a receiver has got, verified by the official package of Standard Webhooks. */
export type HookCall = {
  readonly type: `before.${Point}`
  readonly timestamp: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into data of every shape
  readonly data: any
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** An object is the answer, as JSON with status 200. */
export type HookReply = object | ((response: ServerResponse, call: HookCall) => unknown)

export type HookReceiver = {
  readonly url: string
  readonly calls: HookCall[]
  /** The reply from now on. */
  reply(reply: HookReply): void
  /** The calls since the last time, as the words of their types. */
  taken(): readonly string[]
  /** Settings of a hook of this receiver. */
  settings(more?: Partial<HookSettings>): HookSettings
}

export const HOOK_SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
/** For services with hooks of tests: their receivers are on loopback. */
export const OUTBOUND = { allow_http: true, allow_networks: ['127.0.0.1'] }

/** Headers of a request behind a trusted proxy, from one of many networks: each has a share of the calls of a hook. */
export const fromNetwork = (index: number) => ({
  headers: { 'x-forwarded-for': `2001:db8:${index.toString(16)}::1` },
})

export const REFUSE = { decision: 'refuse', message: 'Not with us' }

export async function startHookReceiver(secret = HOOK_SECRET): Promise<HookReceiver> {
  const calls: HookCall[] = []
  let current: HookReply = {}
  let taken = 0
  const listener: RequestListener = async (request, response) => {
    const body = await text(request)
    const headers = request.headers as Record<string, string> // each of those of a hook comes once
    const { type, timestamp, data } = new Webhook(secret).verify(body, headers) as HookCall
    const call = { type, timestamp, data, headers, text: body }
    calls.push(call)
    if (typeof current === 'function') await current(response, call)
    else response.end(JSON.stringify(current))
  }
  const { url } = await startLoopbackServer((request, response) =>
    Promise.resolve(listener(request, response)).catch((error) => response.writeHead(500).end(String(error))),
  )
  return {
    url: `${url}/hook`,
    calls,
    reply: (reply) => {
      current = reply
    },
    taken() {
      const fresh = calls.slice(taken).map(({ type, data }) => `${type} ${data.method ?? data.template}`)
      taken = calls.length
      return fresh
    },
    settings: (more = {}) => ({
      url: `${url}/hook`,
      secret,
      on: ['sign_up', 'sign_in', 'token'],
      timeout: 10_000,
      on_failure: 'refuse',
      ...more,
    }),
  }
}

/** A reply that waits until it is let go, for as many calls as come. */
export function heldReply(reply: object = {}): {
  readonly reply: HookReply
  /** Resolves when this many calls wait. */
  waiting(count: number): Promise<void>
  letGo(): void
} {
  const gate = Promise.withResolvers<void>()
  let held = 0
  let watch: { readonly count: number; readonly resolve: () => void } | undefined
  return {
    async reply(response: ServerResponse) {
      held++
      if (watch !== undefined && held >= watch.count) watch.resolve()
      await gate.promise
      response.end(JSON.stringify(reply))
    },
    waiting: (count) =>
      new Promise((resolve) => {
        watch = { count, resolve }
        if (held >= count) resolve()
      }),
    letGo: gate.resolve,
  }
}

/** The text of all that a receiver was told has none of these secrets. */
export function expectSilentAbout({ calls }: HookReceiver, secrets: readonly string[]): void {
  for (const { text } of calls)
    for (const secret of secrets) assert.ok(!text.includes(secret), `${secret.slice(0, 4)}… is in a call`)
}
