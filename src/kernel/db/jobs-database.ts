import type pg from 'pg'
import type { Db } from 'pg-boss'
import type { Coherence } from './coherence.ts'

export type JobsDatabase = Db

/**
 * What the job queue asks its statements of: connections of ours, so that the loss of one ends neither the process nor the queue.
 * It hears of new jobs on the one connection of the process that listens.
 */
export const createJobsDatabase = (pool: pg.Pool, { listen }: Coherence): JobsDatabase => ({
  executeSql: (text, values) => pool.query(text, values),
  listen: async (channel, receive, back) => ({ close: await listen(channel, receive, back) }),
})
