import cluster from 'node:cluster'
import { Command } from 'commander'
import spinner from 'yocto-spinner'
import { prepareLogging } from '#gateway/management/audit.ts'
import { warningsOf } from '#kernel/config/warnings.ts'
import { secureRandom } from '#kernel/random.ts'
import { VERSION } from '#kernel/version.ts'
import { type Databases, loggingOwner, openDatabases } from '../control.ts'
import { type MakingContext, makingContext } from './context.ts'
import { type DefaultKey, ensureDefaultKey } from './default-key.ts'
import { returnMemory } from './memory.ts'
import { terminal } from './terminal.ts'
import { runWorker, startWorkers } from './workers.ts'

export function serveCommand(): Command {
  return new Command('serve').description('run the service').action(async (_options, command: Command) => {
    const context = await makingContext(command)
    if (cluster.isPrimary) await serve(context)
    else await runWorker(context)
  })
}

/** What answers requests: this process, or several that share the port. */
export type Running = { readonly port: number; stop(): Promise<void> }

async function serve(context: MakingContext): Promise<void> {
  const began = performance.now()
  const progress = showProgress()
  const stopping = stopSignal()
  const { config } = context
  // The web server's modules load while PostgreSQL starts.
  const app = config.server.workers === 1 ? import('../app.ts') : undefined
  const databases = await openDatabases({
    ...context,
    random: secureRandom,
    report: progress.step,
    makes: true,
  })
  databases.died.then(({ log }) => {
    terminal.warn(`The embedded PostgreSQL server has ended unexpectedly.\n${log}`)
    process.exit(1)
  })
  const owner = loggingOwner(context.config, databases)
  if (owner !== undefined) await prepareLogging(owner, databases.logging?.reader)
  const defaultKey = await ensureDefaultKey(context, databases)
  progress.step('listen')
  const running =
    app === undefined ? await startWorkers(context, databases) : await serveHere(context, databases, app)
  progress.end()
  announce(context, databases, {
    port: running.port,
    defaultKey,
    seconds: (performance.now() - began) / 1_000,
  })
  await returnMemory()

  const signal = await stopping
  context.log.info({ event: 'stopping', signal }, 'stopping')
  await running.stop()
  await databases.stop()
  process.exit(0)
}

type App = Promise<typeof import('../app.ts')>

async function serveHere(context: MakingContext, databases: Databases, app: App): Promise<Running> {
  const { startService } = await app
  const service = await startService({ ...context, databases, adminKey: context.installation.adminKey })
  await service.work()
  const port = await service.listen()
  return { port, stop: () => service.stop() }
}

/** Resolves at the first SIGTERM or SIGINT; the second ends the process at once. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(1)
        asked = true
        resolve(signal)
      })
    }
  })
}

const STEPS: Readonly<Record<string, string>> = {
  initdb: 'Creating the database (once) …',
  start: 'Starting PostgreSQL …',
  provision: 'Making databases and roles …',
  migrate: 'Bringing the schema up to date …',
  listen: 'Opening the port …',
}

/** A spinner on a terminal, nothing elsewhere. */
function showProgress(): { step(name: string): void; end(): void } {
  if (!terminal.isInteractive) return { step: () => {}, end: () => {} }
  const spinning = spinner({ text: 'Starting …' }).start()
  return {
    step: (name) => {
      spinning.text = STEPS[name] ?? name
    },
    end: () => void spinning.stop(),
  }
}

type Facts = {
  readonly port: number
  readonly defaultKey: DefaultKey | undefined
  readonly seconds: number
}

/** Tells where everything is, once, when requests are answered. A key is shown on a terminal only, and in no log record. */
function announce(context: MakingContext, databases: Databases, { port, defaultKey, seconds }: Facts): void {
  const { config, installation, log } = context
  const url = config.server.public_url ?? `http://localhost:${port}`
  for (const advice of [databases.advice ?? [], warningsOf(config)].flat())
    log.warn({ event: 'advice' }, advice)
  if ((config.log.format ?? (terminal.isInteractive ? 'pretty' : 'json')) === 'json') {
    log.info({ event: 'ready', url, port, seconds: Math.round(seconds * 10) / 10 }, 'ready')
    return
  }
  terminal.say(`Gatehouse ${VERSION} · ${databases.describes}`)
  terminal.say(`  auth      ${url}${config.auth.base_path}`)
  terminal.say(`  gateway   ${url}`)
  if (config.docs.enabled) terminal.say(`  docs      ${url}/docs`)
  if (defaultKey !== undefined)
    terminal.say(`  client    default · key in ${defaultKey.file}${shownOnce(defaultKey)}`)
  if (installation.adminKeyFile !== undefined) terminal.say(`  admin     key in ${installation.adminKeyFile}`)
  terminal.say(`ready in ${seconds.toFixed(1)} s`)
}

/** To somebody who sits there, when the key is new. */
const shownOnce = ({ issued }: DefaultKey): string =>
  issued !== undefined && terminal.isInteractive ? `\n            ${issued} (shown this once)` : ''
