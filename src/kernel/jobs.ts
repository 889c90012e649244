import { sql } from 'kysely'
import { fromKysely, type Job, type JobResult, PgBoss } from 'pg-boss'
import type { Db } from './db/connect.ts'
import type { JobsDatabase } from './db/jobs-database.ts'
import type { Log } from './log.ts'
import { MAIL_CONNECTIONS } from './mail/transports.ts'

/** Kind of job → its data in the queue, where secrets are sealed. */
type JobData = {
  /** `mail` is sealed for the job: it may contain a one-time link. */
  'send-mail': { mail: string } & RecipientTag
  /** A request that names an email address, which may have an account; sealed for the job. */
  'answer-mail-request': { request: string } & RecipientTag
  /** The id of a row of `backup_job`. */
  'run-backup': { job: string }
  /** The rows of one pipeline run in the step log. */
  'log-pipeline-steps': { steps: LoggedStep[] }
}
/** A row of `public.pipeline_step_log` (gateway.md 9). */
export type LoggedStep = {
  readonly created_at: string
  readonly pipeline_run_id: string
  readonly request_id: string | null
  readonly pipeline_name: string | null
  readonly step: 'source' | 'transform' | 'sink'
  readonly service_client: string
  readonly table_name: string | null
  readonly status_code: number
  readonly duration_ms: number
  readonly error_message: string | null
  readonly details: Readonly<Record<string, unknown>>
}
/** A tag of the address (mailer.ts), by which the job is found when its account is deleted. */
type RecipientTag = { recipient?: string }
type JobName = keyof JobData

/** Retries are spread over about a day: 30 s, doubling, at most an hour apart. */
const QUEUES: Record<JobName, Queue> = {
  'answer-mail-request': { retryLimit: 5, retryDelay: 5, retryDelayMax: 60 },
  'log-pipeline-steps': { retryLimit: 30, retryDelay: 30, retryDelayMax: 3_600 },
  // Retried only if the row could not be claimed: what has begun is not begun again.
  'run-backup': { retryLimit: 30, retryDelay: 5, retryDelayMax: 3_600, expireInSeconds: 80_000 },
  'send-mail': { retryLimit: 30, retryDelay: 30, retryDelayMax: 3_600 },
}
const NAMES = Object.keys(QUEUES) as JobName[] // keys of a literal

type Queue = {
  readonly retryLimit: number
  readonly retryDelay: number
  readonly retryDelayMax: number
  /** Longest time of a job; 15 minutes by default. */
  readonly expireInSeconds?: number
}

/** Concurrent jobs of each kind in one process. */
const WORKERS: Record<JobName, number> = {
  'answer-mail-request': 2,
  'log-pipeline-steps': 1,
  'run-backup': 1,
  'send-mail': MAIL_CONNECTIONS,
}

export type Handlers = { readonly [Name in JobName]: (data: JobData[Name], id: string) => Promise<void> }

/** Jobs of the other kinds wait. */
export type SomeHandlers = Partial<Handlers>

export type RecurringTask = ScheduledTask | RepeatedTask
/** One process at a time does it. */
type ScheduledTask = Task & { readonly cron: string }
/** Every process does it: at its start, and then after so many milliseconds. */
type RepeatedTask = Task & { readonly every: number }
type Task = { readonly name: string; run(): Promise<void> }

/** A durable queue in the control database, shared by every process on it. */
export type Jobs = {
  /** Enqueues in the caller's transaction, if `db` is one: then the job is committed with it. `id`: a UUID that its data is sealed for. */
  enqueue<Name extends JobName>(db: Db, name: Name, data: JobData[Name], id?: string): Promise<void>
  /** Whether a job with this data waits for a worker. */
  isWaiting<Name extends JobName>(db: Db, name: Name, data: JobData[Name]): Promise<boolean>
  /** Deletes waiting jobs with one of these recipients, in the caller's transaction. */
  discard(db: Db, recipients: readonly string[]): Promise<void>
  /** Starts the workers of the queues and of the recurring table. */
  start(handlers: SomeHandlers, recurring: readonly RecurringTask[]): Promise<void>
  /** Runs the jobs that are due and returns their number; for tests, which do not `start`. */
  drain(handlers: SomeHandlers): Promise<number>
  /** Waiting jobs, by kind. */
  depths(): Promise<Record<string, number>>
  /** Starts no further jobs; resolves when the running ones are done. Jobs can still be enqueued. */
  finish(): Promise<void>
  /** Fails the jobs that still run, so that another process tries them again, and closes the queue. */
  stop(): Promise<void>
}

type JobsOptions = {
  readonly database: JobsDatabase
  readonly log: Log
  readonly migrate: boolean
  /** Called with every failure of a job or of the queue. */
  readonly onFailure: (error: unknown) => void
  /** Called with the end of each job of a queue. */
  readonly onOutcome?: (isDone: boolean) => void
}

export async function startJobs({
  database,
  log,
  migrate,
  onFailure,
  onOutcome = () => {},
}: JobsOptions): Promise<Jobs> {
  const boss = new PgBoss({
    db: database,
    schema: 'service_jobs',
    migrate,
    createSchema: migrate,
    useListenNotify: true,
  })
  boss.on('error', (error) => {
    onFailure(error)
    log.error({ event: 'jobs_error', error }, 'the job queue failed')
  })
  await boss.start()
  const known = new Set((await boss.getQueues()).map((queue) => queue.name))
  for (const name of NAMES) {
    const options = { ...QUEUES[name], retryBackoff: true, deleteAfterSeconds: 3_600, notify: true }
    if (!known.has(name)) await boss.createQueue(name, options)
  }

  const worked = new Set<string>()
  const repeating: (() => Promise<void>)[] = []
  return {
    async enqueue(db, name, data, id) {
      await boss.send(name, data, { db: fromKysely(db.withoutPlugins()), ...(id !== undefined && { id }) })
    },
    async isWaiting(db, name, data) {
      const { rows } = await sql`select from service_jobs.job where name = ${name} and state < 'active'
        and data @> ${JSON.stringify(data)}::jsonb limit 1`.execute(db)
      return rows.length > 0
    },
    async discard(db, recipients) {
      // An index of pg-boss has the waiting jobs of a queue.
      await sql`delete from service_jobs.job where name = any(${NAMES}) and state < 'active'
        and data ->> 'recipient' = any(${recipients})`.execute(db)
    },
    async start(handlers, recurring) {
      for (const name of NAMES) await workQueue({ boss, log, onFailure, onOutcome }, name, handlers)
      const scheduled = recurring.filter((task) => 'cron' in task)
      for (const task of scheduled) await schedule(boss, task, known)
      for (const { name } of await boss.getSchedules())
        if (name.startsWith(CONFIGURED) && !scheduled.some((task) => task.name === name))
          await boss.unschedule(name)
      for (const name of [...NAMES.filter((name) => handlers[name]), ...scheduled.map(({ name }) => name)])
        worked.add(name)
      for (const task of recurring) if ('every' in task) repeating.push(repeat({ log, onFailure }, task))
    },
    drain: (handlers) => drain(boss, handlers),
    async depths() {
      const queues = await boss.getQueues(NAMES)
      return Object.fromEntries(queues.map((queue) => [queue.name, queue.queuedCount]))
    },
    finish: async () =>
      void (await Promise.all([
        ...[...worked].map((name) => boss.offWork(name, { wait: true })),
        ...repeating.map((end) => end()),
      ])),
    stop: () => boss.stop({ graceful: false }),
  }
}

/**
 * Several workers with one job each: a job that hangs holds up its own worker only, where a batch would wait for its slowest. A
 * worker looks again at once when it has done a job, since notifications of jobs that came meanwhile are gone.
 */
async function workQueue<Name extends JobName>(
  {
    boss,
    log,
    onFailure,
    onOutcome,
  }: Required<Pick<JobsOptions, 'log' | 'onFailure' | 'onOutcome'>> & {
    readonly boss: PgBoss
  },
  name: Name,
  handlers: SomeHandlers,
): Promise<void> {
  const handle = handlers[name]
  if (handle === undefined) return
  const outcome = async ({ id, data }: Job<JobData[Name]>): Promise<JobResult> => {
    try {
      await handle(data, id)
      onOutcome(true)
      return { id, status: 'completed' }
    } catch (error) {
      onFailure(error)
      onOutcome(false)
      log.warn(
        { event: 'job_failed', job: name, job_id: id, error },
        `job ${name} failed and will be tried again`,
      )
      return { id, status: 'failed', output: { message: String(error) } }
    }
  }
  for (let count = 0; count < WORKERS[name]; count++) {
    const worker: string = await boss.work(name, WORK, async (jobs: Job<JobData[Name]>[]) => {
      const results = await Promise.all(jobs.map(outcome))
      boss.notifyWorker(worker)
      return results
    })
  }
}

/** Names of recurring work that comes from the configuration begin so; what is not there any more is unscheduled. */
export const CONFIGURED = 'backup-'

const WORK = { pollingIntervalSeconds: 5, batchSize: 1, perJobResults: true } as const

async function schedule(
  boss: PgBoss,
  { name, cron, run }: ScheduledTask,
  known: ReadonlySet<string>,
): Promise<void> {
  if (!known.has(name)) await boss.createQueue(name, { retryLimit: 0, deleteAfterSeconds: 3_600 })
  await boss.schedule(name, cron)
  await boss.work(name, { pollingIntervalSeconds: 30 }, () => run())
}

/** Returns its end, which waits for the work that runs. */
function repeat(
  { log, onFailure }: Pick<JobsOptions, 'log' | 'onFailure'>,
  { name, every, run }: RepeatedTask,
): () => Promise<void> {
  let running: Promise<void> | undefined
  const report = (error: unknown): void => {
    onFailure(error)
    log.warn({ event: 'job_failed', job: name, error }, `${name} failed and will be tried again`)
  }
  const begin = (): void => {
    running ??= run()
      .catch(report)
      .finally(() => {
        running = undefined
      })
  }
  begin()
  const timer = setInterval(begin, every)
  return async () => {
    clearInterval(timer)
    await running
  }
}

async function drain(boss: PgBoss, handlers: SomeHandlers): Promise<number> {
  let done = 0
  for (const name of NAMES) {
    while (await workOne(boss, name, handlers)) done++
  }
  return done
}

async function workOne<Name extends JobName>(
  boss: PgBoss,
  name: Name,
  handlers: SomeHandlers,
): Promise<boolean> {
  const handle = handlers[name]
  if (handle === undefined) return false
  const [job] = await boss.fetch<JobData[Name]>(name)
  if (job === undefined) return false
  await handle(job.data, job.id).then(
    () => boss.complete(name, job.id),
    (error: unknown) => boss.fail(name, job.id, { message: String(error) }),
  )
  return true
}
