import cluster, { type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import { AggregatorRegistry } from 'prom-client'
import type { Log } from '#kernel/log.ts'
import type { Databases } from '../control.ts'
import type { MakingContext } from './context.ts'
import { returnMemory } from './memory.ts'
import type { Running } from './serve.ts'

/** What the primary hands to its workers over the process channel: it holds passwords, so it is in no environment. */
type Handed = Pick<Databases, 'controlUrl' | 'builtIn' | 'logging'>
type ToWorker = { readonly databases: Handed } | { readonly metrics: string } | 'stop'
type ToPrimary = 'hello' | { readonly listening: number } | 'metrics'

/** Forks `server.workers` processes that share the port. One that dies is replaced. */
export async function startWorkers({ config, log }: MakingContext, databases: Databases): Promise<Running> {
  const { controlUrl, builtIn, logging } = databases
  const aggregator = new AggregatorRegistry()
  let stopping = false

  const start = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const worker = cluster.fork()
      worker.on('message', async (message: ToPrimary) => {
        if (message === 'hello') tell(worker, { databases: { controlUrl, builtIn, logging } })
        else if (message === 'metrics') tell(worker, { metrics: await metricsOf(aggregator, log) })
        else if (typeof message === 'object' && 'listening' in message) resolve(message.listening)
      })
      worker.once('exit', (code, signal) => {
        reject(new Error(`A worker ended before it could serve (${signal ?? `code ${code}`}).`))
        if (!stopping) {
          log.error({ event: 'worker_lost', code, signal }, 'a worker ended and is replaced')
          sleep(1_000).then(() => (stopping ? undefined : start().catch(() => {})))
        }
      })
    })

  const ports = await Promise.all(Array.from({ length: config.server.workers }, start))
  return {
    port: ports[0] ?? config.server.port,
    async stop() {
      stopping = true
      const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
      await Promise.all(workers.map(stopWorker))
    },
  }
}

/** A worker that does not answer in time costs this scrape, not the service. */
async function metricsOf(aggregator: { clusterMetrics(): Promise<string> }, log: Log): Promise<string> {
  try {
    return await aggregator.clusterMetrics()
  } catch (error) {
    log.warn({ event: 'metrics_incomplete', error }, 'a worker did not report its metrics in time')
    return ''
  }
}

const tell = (worker: Worker, message: ToWorker): void => void worker.send(message)

function stopWorker(worker: Worker): Promise<void> {
  return new Promise((resolve) => {
    worker.once('exit', () => resolve())
    tell(worker, 'stop')
  })
}

/** The other side: a process that serves until the primary says stop, or is gone. */
export async function runWorker(context: MakingContext): Promise<void> {
  // Loads while the primary makes the databases ready.
  const app = import('../app.ts')
  const send = (message: ToPrimary): void => void process.send?.(message)
  // Ctrl-C at a terminal reaches every process; the primary decides what happens.
  process.on('SIGINT', () => {})
  process.on('disconnect', () => process.exit(1))
  const waiting: ((text: string) => void)[] = []
  const metricsOfAll = () =>
    new Promise<string>((resolve) => {
      waiting.push(resolve)
      send('metrics')
    })

  const databases = await new Promise<Handed>((resolve) => {
    process.on('message', (message: ToWorker) => {
      if (typeof message === 'object' && 'databases' in message) resolve(message.databases)
      if (typeof message === 'object' && 'metrics' in message)
        for (const answer of waiting.splice(0)) answer(message.metrics)
    })
    send('hello')
  })
  const { startService } = await app
  const service = await startService({
    ...context,
    databases,
    adminKey: context.installation.adminKey,
    metricsOfAll,
  })
  // Its constructor is what makes a worker answer the primary's question.
  new AggregatorRegistry()
  AggregatorRegistry.setRegistries([service.kernel.metrics.registry])
  process.on('message', async (message: ToWorker) => {
    if (message !== 'stop') return
    await service.stop()
    process.exit(0)
  })
  await service.work()
  send({ listening: await service.listen() })
  await returnMemory()
}
