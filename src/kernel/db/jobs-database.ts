import type pg from 'pg'
import type { Db } from 'pg-boss'
import type { Coherence } from './coherence.ts'

export type JobsDatabase = Db

/**
 * Runs the statements of the job queue on our own pool, so that a lost connection ends neither the process nor the queue.
 * Notifications of new jobs arrive on the one connection of the process that listens.
 */
export const createJobsDatabase = (pool: pg.Pool, { listen }: Coherence): JobsDatabase => ({
  executeSql: (text, values) => pool.query(text, values),
  listen: async (channel, receive, back) => ({ close: await listen(channel, receive, back) }),
})
