import cluster from 'node:cluster'
import { createPipelineRegistry } from '#gateway/pipelines/registry.ts'
import type { Figures } from '#kernel/metrics.ts'
import { createDeadline } from '#kernel/shutdown.ts'
import type { Service } from '../app.ts'
import { type InstallingContext, pipelinesOf } from './context.ts'
import type { Finding } from './finding.ts'
import { keepReturningFreed, returnMemory } from './memory.ts'
import type { ToPrimary, ToWorker, WorkerStart } from './worker-messages.ts'

/** Runs one of the processes that share the port, until the primary sends `stop` or exits. */
export async function runWorker(context: InstallingContext): Promise<void> {
  const { config } = context
  const pipelines = createPipelineRegistry(new Map())
  // Load modules while the primary prepares the databases.
  const app = import('../app.ts')
  // A terminal or supervisor may signal every process; only the primary reacts.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
  process.on('disconnect', () => process.exit(1))
  // Node's own messages to a primary that was killed fail here (EPIPE), before `disconnect`. It is no failure of the worker.
  cluster.worker?.on('error', () => process.exit(1))
  const starting = Promise.withResolvers<WorkerStart>()
  const metrics = createQuestions<string>()
  const figures = createQuestions<readonly Figures[]>()
  const findings = createQuestions<readonly Finding[]>()
  let service: Service | undefined

  process.on('message', async (message: ToWorker) => {
    if (message === 'beat') send('beat')
    else if (message === 'collect') send({ collected: await reportOf(service) })
    else if (message === 'report') {
      if (service !== undefined) send({ reported: service.kernel.metrics.figures() })
    } else if ('databases' in message) {
      pipelines.replace(pipelinesOf(config, message.pipelines))
      starting.resolve(message)
    } else if ('usePipelines' in message)
      pipelines.replace(pipelinesOf(config, message.usePipelines ?? undefined))
    else if ('metrics' in message) metrics.answer(message.metrics)
    else if ('figures' in message) figures.answer(message.figures)
    else if ('findings' in message) findings.answer(message.findings)
    else await stop(service, message.stop)
  })
  send('hello')
  const { startService } = await app
  const { databases, port } = await starting.promise
  service = await startService({
    ...context,
    config: { ...config, server: { ...config.server, port } },
    databases,
    pipelines,
    adminKey: context.installation.adminKey,
    metricsOfAll: () => metrics.ask(() => send('metrics')),
    figuresOfAll: () => figures.ask(() => send('figures')),
    doctor: () => findings.ask(() => send('doctor')),
  })
  await service.work()
  send({ listening: await service.listen() })
  await returnMemory()
  await keepReturningFreed()
}

// Ignore send errors: if the channel is closed, `disconnect` follows.
const send = (message: ToPrimary): void => void process.send?.(message, () => {})

async function reportOf(service: Service | undefined): Promise<object[]> {
  return (await service?.kernel.metrics.registry.getMetricsAsJSON()) ?? []
}

async function stop(service: Service | undefined, within: number): Promise<void> {
  await service?.stop(createDeadline(within))
  process.exit(0)
}

/** Pending questions to the primary. Its next answer resolves all of them. */
function createQuestions<Answer>() {
  const waiting: ((answer: Answer) => void)[] = []
  return {
    ask: (send: () => void) =>
      new Promise<Answer>((resolve) => {
        waiting.push(resolve)
        send()
      }),
    answer(answer: Answer) {
      for (const resolve of waiting.splice(0)) resolve(answer)
    },
  }
}
