import { existsSync } from 'node:fs'
import path from 'node:path'
import { breachListProblems } from '#auth/password/breached-passwords.ts'
import { socialProblems } from '#auth/social/social-providers.ts'
import { createDatabaseClock, MAX_DRIFT } from '#kernel/clock.ts'
import { expectTime } from '#kernel/clock-drift.ts'
import { type Config, ConfigError } from '#kernel/config/config.ts'
import { connectOnce } from '#kernel/db/connect.ts'
import { findBinaries } from '#kernel/db/embedded/binaries.ts'
import { onConnection } from '#kernel/db/guarded-client.ts'
import { readOnly } from '#kernel/db/session-settings.ts'
import { namedBy } from '#kernel/db/unusable-database.ts'
import { answersAsGatehouse, portProblem } from '#kernel/http/port.ts'
import { NoInstallation } from '#kernel/installation-secrets.ts'
import { secureRandom } from '#kernel/random.ts'
import { configuredLogging, openDatabases, sessionUrl } from '#startup/open-databases.ts'
import { askingOf, loadPipelines, placeProblems } from './context.ts'
import { expectService } from './judged-checks.ts'
import { sentenceOf } from './terminal.ts'

/** Throws one error that lists all problems with the environment, the data folder and the port. Creates nothing. */
export async function expectStartable(config: Config): Promise<void> {
  const problems = [...(await fileProblems(config)), ...(await portProblems(config))]
  if (problems.length > 0) throw new Error(problems.join('\n'))
}

/** Lists every problem that would stop a start. Creates nothing. */
export async function startProblems(
  config: Config,
  { offline }: { readonly offline: boolean },
): Promise<readonly string[]> {
  const places = await fileProblems(config)
  if (offline) return places
  const checks = [places.length > 0 ? undefined : checkControl(config), checkLogging(config)]
  const databases = (await Promise.all(checks)).filter((problem) => problem !== undefined)
  return [...(await localProblems(config)), ...databases]
}

/** Those of the environment, the data folder and the port. If Gatehouse already runs on the port, the port is not a problem. */
export async function localProblems(config: Config): Promise<readonly string[]> {
  const port = (await answersAsGatehouse(config.server)) ? [] : await portProblems(config)
  return [...(await fileProblems(config)), ...port]
}

const fileProblems = async (config: Config): Promise<readonly string[]> => [
  ...socialProblems(config),
  ...pipelineProblems(config),
  ...(await breachListProblems(config)),
  ...placeProblems(config),
]

export function pipelineProblems(config: Config): readonly string[] {
  try {
    loadPipelines(config)
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n')
  }
}

async function portProblems({ server }: Config): Promise<readonly string[]> {
  const problem = await portProblem(server)
  return problem === undefined ? [] : [problem]
}

/** Opens the control database as `serve` does, but creates nothing. A stopped embedded server is started for the check. */
function checkControl(config: Config): Promise<string | undefined> {
  return problemOf(async () => {
    if (sessionUrl(config) === undefined) {
      await findBinaries()
      // Before the first start there is no database to check.
      if (!existsSync(path.join(config.server.data_dir, 'postgres/data'))) return
    }
    const asking = { ...askingOf(config), random: secureRandom, report: () => {} }
    const databases = await openDatabases({ ...asking, config, join: true, createsMissing: false })
    try {
      await expectClock(databases.controlUrl)
      await expectService(config, databases.controlUrl)
    } finally {
      await databases.stop()
    }
  })
}

async function expectClock(controlUrl: string): Promise<void> {
  const control = connectOnce(readOnly(controlUrl))
  try {
    await expectTime(control.pool, createDatabaseClock(), MAX_DRIFT)
  } finally {
    await control.close()
  }
}

async function checkLogging(config: Config): Promise<string | undefined> {
  const { url, setting } = configuredLogging(config)
  if (url === undefined) return undefined
  return problemOf(() => namedBy(setting, url, () => onConnection({ url, name: 'start' }, async () => {})))
}

async function problemOf(check: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await check()
    return undefined
  } catch (error) {
    return error instanceof NoInstallation ? undefined : sentenceOf(error)
  }
}
