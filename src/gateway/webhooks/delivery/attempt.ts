import { OutboundRefused } from '#kernel/http/outbound/outbound.ts'
import { signedHeaders } from '#kernel/http/outbound/webhook-signature.ts'
import { testReceiverUrl } from '#kernel/http/test-receiver.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { VERSION } from '#kernel/version.ts'
import { type Endpoint, signingSecrets } from './endpoint.ts'
import { waitAskedBy } from './retry-schedule.ts'

/** The result of one request to an endpoint. */
export type AttemptResult = {
  readonly isSuccess: boolean
  readonly responseStatus: number | null
  readonly responseBody: string | null
  readonly error: string | null
  readonly durationMs: number
  /** Milliseconds that a failed answer asks to wait before the next attempt; 0 for none. */
  readonly waitAsked: number
}

/** Bytes of an answer that are kept. */
const KEPT = 4_096

/** Characters of an error that are kept. */
const MAX_ERROR = 500

/** Sends an event once, signed at this time. Throws only when the signal aborts it. */
export async function attemptDelivery(
  kernel: Pick<Kernel, 'outbound' | 'now' | 'config' | 'port'>,
  endpoint: Endpoint,
  event: { readonly id: string; readonly body: string },
  signal?: AbortSignal,
): Promise<AttemptResult> {
  const { outbound, now } = kernel
  const at = now()
  const timestamp = Math.floor(at.getTime() / 1_000)
  const began = performance.now()
  const passed = () => Math.round(performance.now() - began)
  try {
    const { status, body, headers } = await outbound.send(endpoint.url, {
      method: 'POST',
      headers: {
        ...endpoint.headers,
        'content-type': 'application/json',
        'user-agent': `gatehouse/${VERSION}`,
        ...signedHeaders(signingSecrets(endpoint, at), { ...event, timestamp }),
      },
      body: event.body,
      timeout: endpoint.timeoutMs,
      maxBytes: KEPT,
      cutsBody: true,
      except: testReceiverUrl(kernel),
      ...(signal && { signal }),
    })
    const isSuccess = status >= 200 && status < 300
    const responseBody = storable(new TextDecoder().decode(body))
    return {
      isSuccess,
      responseStatus: status,
      responseBody,
      error: errorOf(status),
      durationMs: passed(),
      waitAsked: isSuccess ? 0 : waitAskedBy(headers['retry-after'], now()),
    }
  } catch (error) {
    if (signal?.aborted) throw error
    const sentence = storable(sentenceOf(error, endpoint)).slice(0, MAX_ERROR)
    return {
      isSuccess: false,
      responseStatus: null,
      responseBody: null,
      error: sentence,
      durationMs: passed(),
      waitAsked: 0,
    }
  }
}

/** PostgreSQL stores no NUL. The decoder has replaced bytes that are not UTF-8. */
const storable = (text: string): string => text.replaceAll('\0', '\ufffd')

function errorOf(status: number): string | null {
  if (status >= 200 && status < 300) return null
  if (status >= 300 && status < 400) return `The endpoint answered ${status}; redirects are not followed.`
  return `The endpoint answered ${status}.`
}

function sentenceOf(error: unknown, { timeoutMs }: Endpoint): string {
  if (!(error instanceof Error)) return 'The request failed.'
  if (error instanceof OutboundRefused) return `The address is refused: ${error.message}.`
  if (error.name === 'TimeoutError') return `The endpoint did not answer within ${timeoutMs} ms.`
  // An attempt at several addresses of a name has one error for each.
  const first = error instanceof AggregateError && error.message === '' ? error.errors[0] : error
  return `The request failed: ${first instanceof Error ? first.message : String(first)}`
}
