import type {
  AbilityOf,
  Driver,
  OpenTransaction,
  Persona,
  Presence,
  RowsResult,
  WriteResult,
} from '#databases/drivers/driver.ts'
import type { Planner } from '#databases/drivers/planner.ts'
import { callFunction } from '#databases/drivers/postgres/call.ts'
import { runSql } from '#databases/drivers/postgres/caller-sql.ts'
import type { Pool } from '#databases/drivers/postgres/pool/pool.ts'
import type { RunUntrusted } from '#databases/drivers/postgres/pool/untrusted-connections.ts'
import {
  countRows,
  type ResultLimits,
  selectRows,
  streamRows,
} from '#databases/drivers/postgres/read-rows.ts'
import type { Runner } from '#databases/drivers/postgres/runner.ts'
import { requireOneStatement } from '#databases/drivers/postgres/sql/fixed-statement.ts'
import { inTransaction } from '#databases/drivers/postgres/transaction.ts'
import { type DefaultsReader, writeRows } from '#databases/drivers/postgres/write-rows.ts'
import { fail } from '#databases/failures.ts'
import { namesOneRow } from '#databases/plan/by-key.ts'
import type { ChangePlan, ReadPlan, WritePlan } from '#databases/plan/plan.ts'

type Parts = {
  readonly pool: Pool
  readonly run: Runner
  /** For long reads, as all of these on connections of its own. */
  readonly runStream: Runner
  readonly runOfSql: RunUntrusted
  readonly runOfCalls: RunUntrusted
  readonly attempt: Planner['attempt']
  readonly defaultsFor: DefaultsReader
  readonly limits: ResultLimits
  /** Milliseconds. */
  readonly transactionTimeout: number
}

/** The operations of a driver that run as the caller; without a persona, with the client's own role. */
export function callerOperations(parts: Parts, persona: Persona | undefined) {
  const { pool, runOfSql, runOfCalls, attempt, defaultsFor, limits, transactionTimeout: timeout } = parts
  const [run, runStream] =
    persona === undefined
      ? [parts.run, parts.runStream]
      : [parts.run.as(persona), parts.runStream.as(persona)]
  const csv = { ...limits, isCsv: true }
  const { bytes: maxBytes } = limits

  const write = <P extends WritePlan>(planned: P, on?: OpenTransaction, presence?: Presence) =>
    attempt(planned, (plan) => writeRows({ run, defaultsFor }, plan, limits, on, presence), on !== undefined)
  /** A failure in a transaction undoes it. */
  async function change<P extends ChangePlan>(
    planned: P,
    on?: OpenTransaction,
    presence?: Presence,
  ): Promise<WriteResult> {
    const { request, table, where } = planned
    if (!request.single || namesOneRow(table, where)) return write(planned, on, presence)
    if (on === undefined)
      return attempt(planned, (plan) => transaction((own) => change(plan, own), { presence }))
    const result = await write(planned, on, presence)
    if (result.affected > 1) throw fail('not_one_row')
    return result
  }
  const transaction: AbilityOf['transaction'] = (work, how) =>
    inTransaction(pool, work, { ...how, timeout, persona })
  const linesOf = async (planned: ReadPlan, read: (plan: ReadPlan) => Promise<RowsResult>) => {
    const { json, facts } = await attempt(planned, read)
    return { lines: json, facts }
  }

  return {
    select: (planned, on, presence) =>
      attempt(planned, (plan) => selectRows(run, plan, limits, on, presence), on !== undefined),
    selectCsv: (planned, presence) =>
      linesOf(planned, (plan) => selectRows(run, plan, csv, undefined, presence)),
    stream: (planned, presence) => attempt(planned, (plan) => streamRows(runStream, plan, limits, presence)),
    streamCsv: (planned, presence) => linesOf(planned, (plan) => streamRows(runStream, plan, csv, presence)),
    count: (planned, on, presence) =>
      attempt(planned, (plan) => countRows(run, plan, plan.request.mode, on, presence), on !== undefined),
    insert: write,
    update: change,
    delete: change,
    call: (request) => callFunction(run, runOfCalls, request, { persona, maxBytes }),
    fixedSql: {
      check: requireOneStatement,
      // The login of callers' own SQL may not take the roles of callers.
      run: async (request) =>
        runSql({ run: persona === undefined ? runOfSql : runOfCalls, maxBytes, persona }, request),
    },
    transaction,
  } satisfies Partial<Driver>
}
