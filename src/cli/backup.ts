import path from 'node:path'
import { Command } from 'commander'
import { recordOf, requestBackup } from '#gateway/backups/jobs/jobs.ts'
import { createBackupRunner } from '#gateway/backups/jobs/runner.ts'
import type { JobRow } from '#gateway/backups/jobs/store.ts'
import { exists } from '#gateway/backups/location/folder-store.ts'
import { isInS3 } from '#gateway/backups/location/location.ts'
import type { BackupSources } from '#gateway/backups/sources.ts'
import type { Config } from '#kernel/config/config.ts'
import { secretFile } from '#kernel/installation-secrets.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { loggingOwner, type ServiceDatabases } from '#startup/open-databases.ts'
import { contextOf } from './context.ts'
import { onInterrupt } from './interrupted.ts'
import { showProgress } from './progress.ts'
import { terminal } from './terminal.ts'
import { withClient } from './with-client.ts'

type Options = { client: string; output?: string | undefined; label?: string; json?: boolean }

export function backupCommand(): Command {
  return new Command('backup')
    .description('back up a client, or on the embedded server the whole server, also while the service runs')
    .option('--client <client>', 'client to back up', 'default')
    .option('--output <file>', 'file to write; default: a new one in backups.location')
    .option('--label <text>', 'a remark, kept with the backup')
    .option('--json', 'as JSON')
    .action(async (options: Options, command: Command) => {
      const output = options.output === undefined ? undefined : path.resolve(options.output)
      if (output !== undefined && (await exists(output)))
        throw new Error(`The file ${output} exists already.`)
      const job = await withClient(command, options.client, (kernel, clients, databases) =>
        backUp(kernel, sourcesOf(kernel, databases, clients), { ...options, output }),
      )
      report(job, options.json === true)
      const { config, environment } = contextOf(command)
      for (const warning of warningsAbout(config, environment, job)) terminal.warn(warning)
      if (job.status !== 'completed') process.exitCode = 1
    })
}

const sourcesOf = (
  { config }: Kernel,
  databases: ServiceDatabases,
  clients: BackupSources['clients'],
): BackupSources => ({
  clients,
  builtIn: databases.builtIn,
  embedded: databases.embedded,
  loggingOwner: loggingOwner(config, databases),
})

/** Runs the job in this process. Ctrl-C ends it like a stop of the service. */
async function backUp(
  kernel: Kernel,
  sources: BackupSources,
  { client, output, label }: Options,
): Promise<JobRow> {
  const { id } = await requestBackup(kernel, sources, {
    client_name: client,
    label: label ?? null,
    isRunHere: true,
    ...(output !== undefined && { output }),
  })
  const runner = createBackupRunner(kernel, sources)
  const progress = await showProgress(100)
  const interruptible = onInterrupt(() => runner.stop())
  try {
    const job = await runner.run(id, ({ progressPct }) => progress.advanceTo(progressPct))
    if (job === undefined) throw new Error('Another process has ended the backup.')
    return job
  } finally {
    progress.end()
    interruptible.end()
  }
}

function report(job: JobRow, asJson: boolean): void {
  if (asJson) terminal.say(JSON.stringify(recordOf(job), null, 2))
  else if (job.status !== 'completed') terminal.warn(job.errorMessage ?? job.status)
  else terminal.say(`${job.location}  (${sizeOf(Number(job.sizeBytes))})`)
}

const sizeOf = (bytes: number): string =>
  bytes < 1_048_576 ? `${Math.ceil(bytes / 1_024)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`

/** An archive beside its secret protects nothing: one thief, or one broken disk, gets both. */
function warningsAbout(
  config: Config,
  environment: (name: string) => string | undefined,
  job: JobRow,
): string[] {
  if (job.format !== 'archive' || job.location === null) return []
  const secret = path.resolve(secretFile(config))
  if (environment('SERVICE_SECRET') !== undefined) return []
  const folder = path.dirname(secret)
  const isBeside = !isInS3(job.location) && !path.relative(folder, job.location).startsWith('..')
  return isBeside
    ? [
        `The archive lies in the folder of the secret that opens it (${secret}): copy the archive to another machine, and the secret to a ` +
          'third place. Without the secret the archive cannot be restored.',
      ]
    : [`Keep ${secret} in another place too: without it the archive cannot be restored.`]
}
