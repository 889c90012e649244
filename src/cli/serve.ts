import cluster from 'node:cluster'
import { Command, Option } from 'commander'
import spinner from 'yocto-spinner'
import { unlessAborted } from '#kernel/abort.ts'
import type { Config } from '#kernel/config/config.ts'
import { warningsOf } from '#kernel/config/warnings.ts'
import type { Log } from '#kernel/log.ts'
import { openedOnce } from '#kernel/opened-once.ts'
import { secureRandom } from '#kernel/random.ts'
import { createDeadline, endWithin } from '#kernel/shutdown.ts'
import { VERSION } from '#kernel/version.ts'
import { offerFirstAdminAt } from '#startup/first-admin.ts'
import { expectDecided } from '#startup/moved-client.ts'
import { openDatabases, openLogging, type ServiceDatabases } from '#startup/open-databases.ts'
import { settleUniqueFieldsAt } from '#startup/unique-fields.ts'
import type { Service } from '../app.ts'
import { configOf, type InstallingContext, installingContext, logOf } from './context.ts'
import { type DefaultKey, ensureDefaultKey } from './default-key.ts'
import { onInterrupt } from './interrupted.ts'
import { expectService, serviceAdvice } from './judged-checks.ts'
import { keepReturningFreed, returnMemory } from './memory.ts'
import { port } from './option-values.ts'
import { createPipelinesInUse, hasLostTerminal, type PipelinesInUse } from './pipelines-in-use.ts'
import type { Running } from './running.ts'
import type { Doctor } from './running-doctor.ts'
import { expectStartable } from './start-checks.ts'
import { terminal } from './terminal.ts'
import { runWorker } from './worker.ts'
import { startWorkers } from './workers.ts'

export function serveCommand(): Command {
  return new Command('serve')
    .description('run the service')
    .addOption(
      new Option('--port <port>', 'setting server.port (default: 8080; 0 picks a free one)').argParser(port),
    )
    .action(async (_options, command: Command) => {
      const config = configOf(command)
      logRuntime(logOf(config))
      // Check before creating anything, including secrets.
      if (cluster.isPrimary) await expectStartable(config)
      const context = await installingContext(command)
      if (cluster.isPrimary) await serve(context)
      else await runWorker(context)
    })
}

/** Logs Node's warnings and uncaught exceptions as records. By default, Node writes plain lines to stderr. */
function logRuntime(log: Log): void {
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message, stack }) => {
    // Of what the program itself has chosen.
    if (name === 'ExperimentalWarning') return
    log.warn({ event: 'runtime_warning', name, stack }, message)
  })
  process.on('uncaughtException', (error) => {
    log.error({ event: 'crashed', error }, 'uncaught exception, the process exits')
    process.exit(1)
  })
}

type Starting = InstallingContext & { readonly pipelines: PipelinesInUse }

/** Resources that a start has opened so far, to be closed if a signal interrupts it. */
type Opened = { databases?: ServiceDatabases; running?: Running }

async function serve(context: InstallingContext): Promise<void> {
  const opened: Opened = {}
  const pipelines = createPipelinesInUse(context, (file) => opened.running?.usePipelines(file))
  const stopRequest = stopSignal(pipelines.reload)
  const progress = showProgress(context.log)
  try {
    await start({ ...context, pipelines }, opened, progress, stopRequest.signal)
    await stopRequest.stop
  } catch (error) {
    progress.end()
    if (!stopRequest.signal.aborted) {
      await shutDown(context, opened, 1)
      throw error
    }
  }
  context.log.info({ event: 'stopping', signal: await stopRequest.stop }, 'stopping')
  await shutDown(context, opened, 0)
  process.exit(0)
}

/** Opens the databases, issues the default key and listens. A signal aborts the start at any step. */
async function start(
  context: Starting,
  opened: Opened,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now()
  const { config } = context
  // The web server's modules load while PostgreSQL starts.
  const app = config.server.workers === 1 ? import('../app.ts') : undefined
  const prepared = await openDatabases({
    ...context,
    random: secureRandom,
    report: progress.step,
    signal,
    createsMissing: true,
  })
  opened.databases = prepared
  prepared.died.then(({ log }) => {
    context.log.error({ event: 'database_lost', log }, 'the embedded PostgreSQL server exited unexpectedly')
    process.exit(1)
  })
  await unlessAborted(signal, expectService(config, prepared.controlUrl))
  await unlessAborted(signal, expectDecided(prepared.controlUrl, config))
  await unlessAborted(signal, settleUniqueFieldsAt(prepared.controlUrl, config))
  const loggingDatabase = await unlessAborted(signal, openLogging(config, prepared))
  const databases = { ...prepared, loggingDatabase }
  const defaultKey = await unlessAborted(signal, ensureDefaultKey(context, databases))
  progress.step('listen')
  opened.running = startHere(context, databases, app)
  const port = await unlessAborted(signal, opened.running.port)
  progress.end()
  const seconds = (performance.now() - began) / 1_000
  announce(context, databases, { port, defaultKey, seconds, firstAdmin: await offer(config, databases) })
  await advise(context, databases)
  await returnMemory()
  await keepReturningFreed()
}

/** Warns of what stops other work than the start. A mail server may need seconds to answer, so the service is ready before that. */
async function advise({ config, log }: Starting, { controlUrl }: ServiceDatabases): Promise<void> {
  // A database that is gone by now is told by its own records.
  const advice = await serviceAdvice(config, controlUrl).catch(() => [])
  for (const says of advice) log.warn({ event: 'advice' }, says)
}

type App = Promise<typeof import('../app.ts')>

function startHere(context: Starting, databases: ServiceDatabases, app: App | undefined): Running {
  const doctor = createLazyDoctor(context, databases)
  return app === undefined
    ? startWorkers(context, databases, doctor)
    : serveHere(context, databases, { app, doctor })
}

/** The checks are loaded when they are first asked for. */
function createLazyDoctor(context: Starting, databases: ServiceDatabases): Doctor {
  const loaded = openedOnce(async () =>
    (await import('./running-doctor.ts')).createDoctor(context, databases),
  )
  return async () => (await loaded.get())()
}

function serveHere(
  context: Starting,
  databases: ServiceDatabases,
  { app, doctor }: { readonly app: App; readonly doctor: Doctor },
): Running {
  let service: Service | undefined
  const listen = async () => {
    const { startService } = await app
    const { adminKey } = context.installation
    const { registry: pipelines } = context.pipelines
    service = await startService({ ...context, pipelines, databases, adminKey, doctor })
    await service.work()
    return service.listen()
  }
  // A service that is still starting has no requests to finish.
  return { port: listen(), usePipelines: () => {}, stop: async (deadline) => service?.stop(deadline) }
}

/** Stops the service, then PostgreSQL. Anything still running after `limits.shutdown` is killed. */
async function shutDown(
  { config, log }: InstallingContext,
  { databases, running }: Opened,
  code: number,
): Promise<void> {
  const deadline = createDeadline(config.limits.shutdown)
  await endWithin('the service', deadline.left('database'), log, async () => running?.stop(deadline))
  const left = Math.max(deadline.left('database'), MIN_MS)
  // Exit even if the operating system cannot kill a child process.
  setTimeout(() => process.exit(code), Math.max(deadline.left(), left + MIN_MS)).unref()
  await endWithin('PostgreSQL', left + MIN_MS, log, async () => databases?.stop(left))
}

/** Minimum time for PostgreSQL's shutdown in milliseconds, even if `limits.shutdown` is 0. */
const MIN_MS = 500

/** Resolves at the first SIGTERM or SIGINT. A second signal ends the process immediately. SIGHUP calls `reload`. */
function stopSignal(reload: () => void): { readonly stop: Promise<string>; readonly signal: AbortSignal } {
  const stop = Promise.withResolvers<string>()
  const aborting = new AbortController()
  const { interrupt } = onInterrupt((signal) => {
    stop.resolve(signal)
    aborting.abort(new Error(`The start was interrupted by ${signal}.`))
  })
  process.on('SIGHUP', (signal) => (hasLostTerminal() ? interrupt(signal) : reload()))
  return { stop: stop.promise, signal: aborting.signal }
}

const STEPS: Readonly<Record<string, string>> = {
  'wait for the previous server': 'Waiting for another server on the same data folder to exit …',
  'wait for the migration lock': 'Waiting for another process to finish migrating …',
  'wait for the provisioning lock': 'Waiting for another process to finish creating databases …',
  initdb: 'Creating the database (once) …',
  start: 'Starting PostgreSQL …',
  provision: 'Creating databases and roles …',
  migrate: 'Migrating the schema …',
  listen: 'Opening the port …',
}

type Progress = { step(name: string): void; end(): void }

/** Shows a spinner on a terminal. Elsewhere, logs a record each time the start waits for another process. */
function showProgress(log: Log): Progress {
  if (!terminal.isInteractive) {
    const step = (name: string) =>
      name.startsWith('wait') && log.info({ event: 'start_waits', step: name }, STEPS[name] ?? name)
    return { step, end: () => {} }
  }
  const spinning = spinner({ text: 'Starting …' }).start()
  return {
    step: (name) => {
      spinning.text = STEPS[name] ?? name
    },
    end: () => void spinning.stop(),
  }
}

type StartSummary = {
  readonly port: number
  readonly defaultKey: DefaultKey | undefined
  /** The token of the link that makes the first admin. */
  readonly firstAdmin: string | undefined
  readonly seconds: number
}

/** A link is printed on a terminal only, and for browsers on this machine. */
async function offer(config: Config, { controlUrl }: ServiceDatabases): Promise<string | undefined> {
  const { console, server } = config
  const isLocal = server.public_url === undefined || isLoopbackUrl(server.public_url)
  if (!console.enabled || !isLocal || !saysReady(config)) return undefined
  return offerFirstAdminAt(controlUrl, config, secureRandom)
}

const isLoopbackUrl = (url: string): boolean =>
  /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)

/** Whether a start ends with lines for a person, on a terminal. */
const saysReady = ({ log }: Config): boolean => terminal.isInteractive && (log.format ?? 'pretty') !== 'json'

/** Prints or logs the service's address once it accepts requests. Keys are shown on a terminal only and are never logged. */
function announce(
  context: InstallingContext,
  databases: ServiceDatabases,
  { port, defaultKey, firstAdmin, seconds }: StartSummary,
): void {
  const { config, installation, log } = context
  const url = config.server.public_url ?? `http://localhost:${port}`
  for (const advice of [databases.advice ?? [], warningsOf(config)].flat())
    log.warn({ event: 'advice' }, advice)
  for (const repair of databases.repairs) log.warn({ event: 'repaired' }, repair)
  if ((config.log.format ?? (terminal.isInteractive ? 'pretty' : 'json')) === 'json') {
    log.info({ event: 'ready', url, port, seconds: Math.round(seconds * 10) / 10 }, 'ready')
    return
  }
  terminal.say(`Gatehouse ${VERSION} · ${databases.describes}`)
  terminal.say(`  auth      ${url}${config.auth.base_path}`)
  terminal.say(`  gateway   ${url}`)
  if (config.console.enabled) terminal.say(`  console   ${url}/console${firstAdminLine(url, firstAdmin)}`)
  if (config.docs.enabled) terminal.say(`  docs      ${url}/docs`)
  if (defaultKey !== undefined)
    terminal.say(`  client    default · key in ${defaultKey.file}${shownOnce(defaultKey)}`)
  if (installation.adminKeyFile !== undefined) terminal.say(`  admin     key in ${installation.adminKeyFile}`)
  terminal.say(`ready in ${seconds.toFixed(1)} s`)
}

/** The token is in the fragment, which browsers send to no server. */
const firstAdminLine = (url: string, token: string | undefined): string =>
  token === undefined
    ? ''
    : `\n            ${url}/console/first-admin#${token} makes the first administrator (shown this once)`

/** Shows a newly issued key if stdout is a terminal. */
const shownOnce = ({ issued }: DefaultKey): string =>
  issued !== undefined && terminal.isInteractive ? `\n            ${issued} (shown this once)` : ''
