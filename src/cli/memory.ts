import { Session } from 'node:inspector/promises'

/**
 * Loading leaves 20 MB of garbage, and a young generation that has grown for it. V8 gives both back when it collects
 * everything, and a service that waits for its first callers gives it no reason to.
 */
export async function returnMemory(): Promise<void> {
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
}
