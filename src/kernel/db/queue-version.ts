import library from 'pg-boss/package.json' with { type: 'json' }

/** The schema of the job queue that this program's library works with. It migrates older ones itself, and takes newer ones as they are. */
export const QUEUE_VERSION = library.pgboss.schema

/** Runs a statement without parameters and answers its rows. */
export type Run = (text: string) => Promise<{ readonly rows: readonly unknown[] }>

/** What the database has; undefined when there is no queue yet. */
export async function queueVersion(run: Run): Promise<number | undefined> {
  const { rows } = await run(`select to_regclass('service_jobs.version') is not null as present`)
  const [found] = rows as { present: boolean }[] // the statement's own column
  if (!found?.present) return undefined
  const versions = await run('select version from service_jobs.version')
  const [stored] = versions.rows as { version: number }[] // the statement's own column
  return stored && Number(stored.version)
}
