import { parentPort } from 'node:worker_threads'
import { lowerThreadPriority } from '#kernel/thread-priority.ts'
import { readAnswer } from './read-answer.ts'
import type { SdkJob, SdkResult } from './sdk-jobs.ts'
import { signRequest, signUrl } from './sign.ts'

/** The thread of the SDK (`createSdk`). */
const port = parentPort
if (port === null) throw new Error('sdk-thread.ts runs as a thread')

// Only the caller of the job waits for it.
lowerThreadPriority()
port.on('message', async (job: SdkJob) => port.postMessage(await resultOf(job)))
port.postMessage('ready')

async function resultOf(job: SdkJob): Promise<SdkResult> {
  try {
    switch (job.kind) {
      case 'sign':
        return { kind: 'signed', signed: await signRequest(job.server, job.asked) }
      case 'sign-url':
        return { kind: 'url', url: await signUrl(job.server, job.asked) }
      case 'read':
        return await readAnswer(job.asked, job.received)
    }
  } catch (error) {
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) }
  }
}
