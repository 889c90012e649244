import { isInS3, locationOf, locationProblem } from '#gateway/backups/location/location.ts'
import { driftSentence, NOTED_DRIFT } from '#kernel/clock.ts'
import type { Config } from '#kernel/config/config.ts'
import { writeProblem } from '#kernel/db/control-role.ts'
import { pendingMigrations } from '#kernel/db/migrate.ts'
import type { Run } from '#kernel/db/queue-version.ts'
import type { Disk } from '#kernel/disk.ts'
import { mailServerProblem } from '#kernel/mail/mail-server.ts'

/** Something that stops work when it is wrong. */
export type Check = {
  readonly name: string
  /** A problem stops the start and all requests, all requests, or some work beside them. */
  readonly stops: 'start' | 'requests' | 'work'
  /** It asks another server, which takes time. */
  readonly isRemote: boolean
  /** The words of doctor when there is no problem. */
  readonly fine: string
  /** A sentence for each problem, with what to do. Throws if the control database does not answer. */
  problems(): Promise<readonly string[]>
}

type CheckTarget = {
  readonly config: Config
  /** On the control database. */
  readonly run: Run
  readonly disk: Pick<Disk, 'problems'>
  /** Milliseconds by which the clock of the control database is ahead. */
  readonly drift: () => number
}

/** The one list of what is checked besides the databases of clients: by the start, `doctor`, `/health/ready` and `/health`. */
export const createChecks = ({ config, run, disk, drift }: CheckTarget): readonly Check[] => [
  {
    name: 'migrations',
    // Otherwise the start applies them.
    stops: config.database.migrate ? 'requests' : 'start',
    isRemote: false,
    fine: 'are applied',
    problems: async () =>
      (await pendingMigrations(run)).map(
        (name) => `Migration ${name} has not been applied: run gatehouse migrate`,
      ),
  },
  {
    name: 'control_role',
    stops: 'start',
    isRemote: false,
    fine: 'may write to the control database',
    problems: async () => listed(await writeProblem(run)),
  },
  {
    name: 'clock',
    stops: 'work',
    isRemote: false,
    fine: 'agrees with the database',
    problems: async () => (Math.abs(drift()) > NOTED_DRIFT ? [driftSentence(drift())] : []),
  },
  {
    name: 'disk',
    stops: 'requests',
    isRemote: false,
    fine: 'has room in server.data_dir',
    problems: disk.problems,
  },
  {
    name: 'backups',
    stops: 'work',
    isRemote: isInS3(locationOf(config, '')),
    fine: `can be written to ${locationOf(config, '')}`,
    problems: async () => listed(await locationProblem(config)),
  },
  {
    name: 'mail',
    stops: 'work',
    isRemote: true,
    fine:
      config.mail.transport === 'smtp' ? 'is sent by smtp' : 'is written to the outbox (gatehouse mail list)',
    problems: async () => listed(await mailServerProblem(config)),
  },
]

const listed = (problem: string | undefined): readonly string[] => (problem === undefined ? [] : [problem])
