import library from 'pg-boss/package.json' with { type: 'json' }

/** Schema version of the job queue's library. The library migrates older schemas and does not refuse newer ones. */
export const QUEUE_VERSION = library.pgboss.schema

/** Runs a statement without parameters and returns its rows. */
export type Run = (text: string) => Promise<{ readonly rows: readonly unknown[] }>

/** The version in the database; undefined when there is no queue yet. */
export async function queueVersion(run: Run): Promise<number | undefined> {
  const { rows } = await run(`select to_regclass('service_jobs.version') is not null as present`)
  const [found] = rows as { present: boolean }[] // the statement's own column
  if (!found?.present) return undefined
  const versions = await run('select version from service_jobs.version')
  const [stored] = versions.rows as { version: number }[] // the statement's own column
  return stored && Number(stored.version)
}
