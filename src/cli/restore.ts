import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { Command } from 'commander'
import { restoreArchive } from '#gateway/backups/archive/restore-archive.ts'
import type { OpenBackup } from '#gateway/backups/location/backup-store.ts'
import { isInS3, storeOf } from '#gateway/backups/location/location.ts'
import type { Config } from '#kernel/config/config.ts'
import { readS3Location } from '#kernel/config/sections/backups.ts'
import { embeddedFolder, passwordFile } from '#kernel/data-folder.ts'
import { generatedOnce, InstallationError, secretFile } from '#kernel/installation-secrets.ts'
import { secureRandom } from '#kernel/random.ts'
import { createSecrets } from '#kernel/secrets.ts'
import { sessionUrl } from '#startup/open-databases.ts'
import { CONTROL } from '#startup/open-embedded.ts'
import { configOf, secretOf } from './context.ts'
import { showProgress } from './progress.ts'
import { expectConsent, terminal } from './terminal.ts'

type Options = { secretFile?: string; replace?: boolean; json?: boolean }

export function restoreCommand(): Command {
  return new Command('restore')
    .description('restore an archive of the embedded server, while the service is stopped')
    .argument(
      '<file>',
      'archive, as gatehouse backup has written it, or s3://bucket/key on the server of backups.s3',
    )
    .option(
      '--secret-file <file>',
      'file with the secret that sealed it; default: the secret of this installation',
    )
    .option('--replace', 'replace the database that is there, which is renamed and kept')
    .option('--json', 'as JSON')
    .action(
      async (
        file: string,
        { secretFile: given, replace = false, json = false }: Options,
        command: Command,
      ) => {
        const config = configOf(command)
        if (sessionUrl(config) !== undefined) throw new InstallationError(NOT_EMBEDDED)
        const secret = expectSecret(config, given)
        const { data_dir } = config.server
        if (replace)
          await expectConsent(
            `Replaces the database in ${path.resolve(data_dir)}, which is kept beside the restored one.`,
          )
        const archive = await openArchive(config, file)
        const progress = await showProgress(archive.size)
        const restored = await restoreArchive({
          archive: archive.content(),
          location: isInS3(file) ? file : path.resolve(file),
          dir: embeddedFolder(config),
          password: () => generatedOnce(passwordFile(config), secureRandom),
          control: CONTROL,
          replace,
          onVerified: () => keepSecret(config, secret),
          secrets: createSecrets(secret.secret, secureRandom, secret.previousSecret),
          mismatch: 'the one given here does not fit',
          report: (step) => progress.warn(`${step} …`),
          onBytes: progress.advance,
        }).finally(() => {
          progress.end()
          return archive.close()
        })
        for (const warning of restored.warnings) terminal.warn(warning)
        if (json)
          return terminal.say(
            JSON.stringify(
              { ...restored.facts, former: restored.former ?? null, warnings: restored.warnings },
              null,
              2,
            ),
          )
        terminal.say(
          `Restored the backup of ${restored.facts.created_at} into ${path.resolve(data_dir)}. All users have to sign in again.`,
        )
        if (restored.former !== undefined)
          terminal.say(
            `The former database is in ${restored.former}; remove it when it is not needed any more.`,
          )
      },
    )
}

/** A file, or an object, which is read while it is unpacked. */
async function openArchive(config: Config, location: string): Promise<OpenBackup> {
  if (isInS3(location)) return openObject(config, location)
  const { size } = statSync(location)
  return { size, content: () => contentOf(location), close: async () => {} }
}

async function* contentOf(file: string): AsyncGenerator<Buffer> {
  // Its chunks are buffers, since the stream has no encoding.
  yield* createReadStream(file, { highWaterMark: 262_144 }) as AsyncIterable<Buffer>
}

async function openObject(config: Config, location: string): Promise<OpenBackup> {
  const isObject = (readS3Location(location)?.key ?? '') !== ''
  const found = isObject ? await storeOf({ config }, location).open(location) : undefined
  if (found === undefined)
    throw new Error(
      `There is no object ${location}: name it as s3://bucket/key, as the job of the backup lists it.`,
    )
  return found
}

const NOT_EMBEDDED =
  'gatehouse restore is for the embedded server, and database.url names another one: restore clients with POST /admin/backups/{id}/restore, ' +
  'and the control database with pg_restore.'

type Given = {
  readonly secret: string
  readonly previousSecret: string | undefined
  readonly isFromFile: boolean
}

/** Throws if the data folder belongs to another secret: its other files would not fit the restored database. */
function expectSecret(config: Config, given: string | undefined): Given {
  const present = secretOf(config)
  if (given === undefined) {
    if (present !== undefined) return { ...present, isFromFile: false }
    throw new InstallationError(
      `The archive cannot be opened: there is no SERVICE_SECRET and no file ${path.resolve(secretFile(config))}. Name the secret's file with ` +
        '--secret-file.',
    )
  }
  const secret = readFileSync(given, 'utf8').trim()
  if (present !== undefined && present.secret !== secret)
    throw new InstallationError(
      `The secret in ${path.resolve(given)} is not that of this installation (${present.mismatch}): restore into an empty folder with --data-dir, and ` +
        'without another SERVICE_SECRET.',
    )
  return { secret, previousSecret: present?.previousSecret, isFromFile: true }
}

/** A fresh data folder gets the secret, as the first start would have made it. */
async function keepSecret(config: Config, { secret, isFromFile }: Given): Promise<void> {
  const file = secretFile(config)
  if (!isFromFile || secretOf(config) !== undefined || existsSync(file)) return
  await writeFile(file, `${secret}\n`, { mode: 0o600, flag: 'wx' })
}
