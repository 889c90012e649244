import { createSemaphores } from '#kernel/keyed-semaphore.ts'
import { createSemaphore } from '#kernel/semaphore.ts'
import { createWorkerThread, ThreadStopped } from '#kernel/worker-thread.ts'
import { fail } from '../errors.ts'
import type {
  Asked,
  AskedUrl,
  OutputOf,
  SdkJob,
  SdkResult,
  ServerAnswer,
  SignedCall,
  StorageServer,
} from './sdk-jobs.ts'

/**
 * The SDK signs requests and reads answers, in a thread of its own: its parser takes 160 ms for 1 MiB of XML entities, in which the process would
 * answer nobody. 50 modules, which a service without object storage never loads.
 */
type Sdk = {
  /** `payer`: whose turn it is; each has one job in the queue at most. */
  sign(payer: string, server: StorageServer, asked: Asked): Promise<SignedCall>
  signUrl(payer: string, server: StorageServer, asked: AskedUrl): Promise<string>
  /** Throws `UnusableAnswer` or `RefusedByServer`. */
  read<A extends Asked>(payer: string, asked: A, received: ServerAnswer): Promise<OutputOf[A['operation']]>
  close(): Promise<void>
}

/** The answer is not one of a storage server. The message is for the caller. */
export class UnusableAnswer extends Error {}

/** The server has refused the request, with its status and, if it gave one, its code. */
export class RefusedByServer extends Error {
  readonly status: number
  readonly code: string | undefined

  constructor(status: number, code: string | undefined) {
    // Without the answer of the server, which may repeat the credentials.
    super(`the storage server answered ${status}`)
    this.status = status
    this.code = code
  }
}

/** Milliseconds for one answer: the largest take 0.2 s, but on a busy machine the thread gets little of its time. */
const DEADLINE = 10_000

/** Of a queue. */
const QUEUE = {
  max: 200,
  patience: 10_000,
  refusal: () => fail('storage_busy', { headers: { 'retry-after': '1' } }),
}

export function createSdk(): Sdk {
  // MiB. The largest answers take 60.
  const sizes = { deadline: DEADLINE, memory: 192 }
  const thread = createWorkerThread({
    module: new URL('./sdk-thread.ts', import.meta.url),
    ...sizes,
    ...QUEUE,
  })
  const turns = createSemaphores()
  const run = async (payer: string, job: SdkJob) => {
    const release = await turns.acquire(payer, () => createSemaphore(1, QUEUE))
    try {
      return (await thread.run(job)) as SdkResult // as sdk-thread.ts posts it
    } finally {
      release()
    }
  }
  return {
    async sign(payer, server, asked) {
      const result = await run(payer, { kind: 'sign', server, asked })
      if (result.kind !== 'signed') throw unexpected(result)
      return result.signed
    },
    async signUrl(payer, server, asked) {
      const result = await run(payer, { kind: 'sign-url', server, asked })
      if (result.kind !== 'url') throw unexpected(result)
      return result.url
    },
    async read<A extends Asked>(payer: string, asked: A, received: ServerAnswer) {
      const result = await run(payer, { kind: 'read', asked, received }).catch(explainStop)
      if (result.kind === 'refused') throw new RefusedByServer(received.status, result.code)
      if (result.kind === 'unusable') throw new UnusableAnswer(result.reason)
      if (result.kind !== 'output') throw unexpected(result)
      return result.output as OutputOf[A['operation']] // the output of the same operation
    },
    close: thread.close,
  }
}

function explainStop(error: unknown): never {
  if (!(error instanceof ThreadStopped)) throw error
  throw new UnusableAnswer('Its answer takes too long to read; ask for fewer keys with max_keys')
}

const unexpected = (result: SdkResult): Error =>
  new Error(result.kind === 'failed' ? result.message : `The SDK's thread answered ${result.kind}`)
