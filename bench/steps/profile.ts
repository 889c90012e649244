import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '#test/free-port.ts'

/** A function with the samples in which it ran itself. https://chromedevtools.github.io/devtools-protocol/tot/Profiler/#type-Profile */
export type ProfileNode = {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  readonly children?: readonly number[]
}
export type Profile = {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const INSPECTOR = `127.0.0.1:${await freePort()}`
/** For the environment of the process. The service does not open its inspector to a signal. */
export const PROFILED = { NODE_OPTIONS: `--inspect=${INSPECTOR}` }
/** µs. */
const INTERVAL = 200

/** Profiles the process that runs with `PROFILED`. The returned function ends the profile. */
export async function startProfile(): Promise<() => Promise<Profile>> {
  const socket = new WebSocket(await addressOf())
  const call = await callsOver(socket)
  await call('Profiler.enable')
  await call('Profiler.setSamplingInterval', { interval: INTERVAL })
  await call('Profiler.start')
  return async () => {
    const { profile } = (await call('Profiler.stop')) as { profile: Profile }
    // The process waits for it before it ends.
    socket.close()
    return profile
  }
}

async function addressOf(): Promise<string> {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      const [target] = (await (await fetch(`http://${INSPECTOR}/json/list`)).json()) as {
        webSocketDebuggerUrl: string
      }[]
      if (target !== undefined) return target.webSocketDebuggerUrl
    } catch {
      await sleep(100)
    }
  }
  throw new Error('The inspector of the service does not answer')
}

type Call = (method: string, params?: object) => Promise<unknown>

async function callsOver(socket: WebSocket): Promise<Call> {
  await new Promise((resolve, reject) => {
    socket.onopen = resolve
    socket.onerror = () => reject(new Error('The inspector refuses the connection'))
  })
  let last = 0
  const waiting = new Map<number, (result: unknown) => void>()
  socket.onmessage = ({ data }) => {
    const { id, result } = JSON.parse(String(data))
    waiting.get(id)?.(result)
    waiting.delete(id)
  }
  return (method, params = {}) => {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    waiting.set(++last, resolve)
    socket.send(JSON.stringify({ id: last, method, params }))
    return promise
  }
}
