import { requireAbility } from '#databases/drivers/abilities.ts'
import type { OpenTransaction, TransactionOptions } from '#databases/drivers/driver.ts'
import { answerTooLarge } from '#databases/drivers/result-limits.ts'
import { redactFailure, redactText } from '#databases/plan/redact-failure.ts'
import { toRead } from '#databases/plan/rights.ts'
import type { Body } from '#databases/request/fields.ts'
import { Failure, withDetails } from '#kernel/errors.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayCaller } from '../caller/caller.ts'
import { requireSamePersona, rightsOf } from '../caller/caller-rights.ts'
import { fail } from '../errors.ts'
import { collect, prepareFetch } from '../grouping/grouped-fetch.ts'
import { type Prepared, prepare } from '../prepare.ts'
import {
  cacheKey,
  type Done,
  type Echo,
  emitEvent,
  type FetchAnswer,
  readEcho,
  runFetch,
  withStripNulls,
} from './data.ts'
import { digestOf, keyOf } from './idempotency-key.ts'
import { type Result, replayedText, resultsText, storedText } from './idempotent-results.ts'
import { readFacts, tail, writeFacts } from './result-facts.ts'
import { transactionOptions } from './transaction-options.ts'

export type Operation = {
  readonly id: string
  readonly kind: 'insert' | 'update' | 'delete' | 'fetch'
  readonly payload: Body
}

export type Transaction = {
  readonly operations: readonly Operation[]
  readonly options: { readonly isolation_level?: string; readonly read_only?: boolean }
  /** Idempotency keys from the header and the body. */
  readonly keys: readonly string[]
  readonly stripNulls: boolean
  /** The caller as it is now. Throws when the caller may not continue. */
  readonly renewed: () => Promise<GatewayCaller>
}

export type TransactionAnswer = {
  /** JSON text of the list of results. */
  readonly results: string
  readonly operations: number
  readonly replayed: boolean
}

/** Retention of stored responses, in milliseconds. */
const STORED_FOR = 24 * 3_600_000

/**
 * Runs several operations atomically (gateway.md 4). With an idempotency key they run once, and repeated requests get the stored response.
 */
export async function runTransaction(
  kernel: Kernel,
  caller: GatewayCaller,
  asked: Transaction,
): Promise<TransactionAnswer> {
  const { limits } = kernel.config
  const steps: Step[] = []
  const recheck = () => requireStillPermitted(kernel, caller, asked, steps)
  const bounds = { deadline: performance.now() + limits.timeout, bytes: limits.answer, recheck }
  const options = transactionOptions(asked, limits.operations)
  const key = keyOf(caller, asked)
  // Resolve all names and check all rights before the first statement.
  for (const [index, operation] of asked.operations.entries())
    steps.push({
      operation,
      index,
      ...(await about(operation, index, () => prepareStep(kernel, caller, operation, asked))),
    })

  const once = async () => answeredBy(await runOnce(caller, steps, bounds, options), steps)
  // Read-only transactions can be repeated, so they need no stored response.
  const under =
    key === undefined || options.readOnly === true
      ? once
      : () =>
          onceUnder(key, kernel, caller, steps, { ...options, bounds, body: digestOf(caller, asked, steps) })
  const results = await committed(caller, steps, under)
  await emitEvents(kernel, results.done)
  return { results: results.json, operations: steps.length, replayed: results.replayed }
}

/** The first one may have to load the webhooks; the others share a statement. A replay has done nothing. */
async function emitEvents(kernel: Kernel, [first, ...others]: readonly CompletedStep[]): Promise<void> {
  if (first !== undefined) await emitEvent(kernel, first.step, first.done)
  await Promise.all(others.map(({ step, done }) => emitEvent(kernel, step, done)))
}

/** Before COMMIT: a key may have been revoked, a session ended or a client frozen while the operations ran or waited for a lock. */
async function requireStillPermitted(
  kernel: Kernel,
  caller: GatewayCaller,
  asked: Transaction,
  steps: readonly Step[],
): Promise<void> {
  const now = await asked.renewed()
  requireSamePersona(caller, now)
  if (now.grant === caller.grant && now.client === caller.client) return
  for (const { operation, index, plan } of steps) {
    const renewed = await about(operation, index, () => prepareStep(kernel, now, operation, asked))
    if (answersRows(plan) && !answersRows(renewed.plan)) throw fail('write_conflict')
  }
}

/** A write without the right to read answers none. */
const answersRows = ({ request }: Step['plan']): boolean => !('head' in request && request.head)

type StoredAnswer = {
  readonly json: string
  readonly done: readonly CompletedStep[]
  readonly replayed: boolean
}

const answeredBy = ({ results, done }: Results, steps: readonly Step[]): StoredAnswer => ({
  json: resultsText(
    results.map(({ json }) => String(json)),
    steps.map(({ operation }) => operation),
  ),
  done,
  replayed: false,
})

/** A planned and permitted operation; `run` returns its result. */
type RunnableStep = Omit<Prepared, 'run'> & { readonly run: (on: OpenTransaction) => Promise<Result> }
type Step = RunnableStep & { readonly operation: Operation; readonly index: number }

function prepareStep(
  kernel: Kernel,
  caller: GatewayCaller,
  { kind, payload }: Operation,
  { stripNulls }: Transaction,
): Promise<RunnableStep> {
  if (kind === 'fetch') return prepareRead(kernel, caller, stripNulls ? withStripNulls(payload) : payload)
  return prepareWrite(kernel, caller, payload, kind)
}

async function prepareRead(kernel: Kernel, caller: GatewayCaller, body: Body): Promise<RunnableStep> {
  const echo = readEcho(body)
  const fetch = await prepareFetch(kernel, caller, body)
  const run = async (on: OpenTransaction): Promise<Result> => {
    const read = await runFetch(kernel, fetch, cacheKey(fetch), on)
    return fetched({ ...read, ...echo }, kernel.config.limits.answer)
  }
  return { ...fetch, run }
}

async function prepareWrite(
  kernel: Kernel,
  caller: GatewayCaller,
  body: Body,
  kind: 'insert' | 'update' | 'delete',
): Promise<RunnableStep> {
  const write = await prepare(kernel, caller, body, kind)
  const run = async (on: OpenTransaction): Promise<Result> => {
    const written = await write.run(on)
    return {
      ...joined(kind, written.json, tail(writeFacts(written))),
      rows: written.rows,
      affected: written.affected,
    }
  }
  return { ...write, run }
}

async function fetched(read: FetchAnswer & Echo, max: number): Promise<Result> {
  const rows = await collect(read.rows, max)
  const end = tail(readFacts(read), read.postProcessing)
  return { ...joined('fetch', [rows], end), rows: read.rows.facts().rows, affected: 0 }
}

/** `data` is a view into the whole. */
function joined(
  kind: Operation['kind'],
  rows: readonly Buffer[],
  end: Buffer,
): Pick<Result, 'json' | 'data'> {
  const head = Buffer.from(`{"kind":"${kind}","data":`)
  const json = Buffer.concat([head, ...rows, end])
  return { json, data: json.subarray(head.length, json.length - end.length) }
}

type CompletedStep = { readonly step: Step; readonly done: Done }
type Results = {
  readonly results: readonly (Result & { readonly kind: string })[]
  readonly done: readonly CompletedStep[]
}

/** `deadline` is in performance.now() time; `bytes` limits the total size of the results. `recheck` throws to roll back. */
type Bounds = { readonly deadline: number; readonly bytes: number; readonly recheck: () => Promise<void> }

const runOnce = (
  { backend, presence }: GatewayCaller,
  steps: readonly Step[],
  bounds: Bounds,
  options: TransactionOptions,
) => requireAbility(backend, 'transaction')((on) => perform(steps, bounds, on), { ...options, presence })

/**
 * Deferred constraints fail at COMMIT, without an operation. Their details are revealed only to callers that may read all tables of the
 * transaction.
 */
async function committed<T>(
  caller: GatewayCaller,
  steps: readonly Step[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure) || error.details?.operation_id !== undefined) throw error
    const rights = rightsOf(caller)
    const seesAll = steps.every(({ plan }) => rights.may(toRead(plan.table)))
    throw seesAll ? redactFailure(rights, error, undefined) : redactText(error)
  }
}

/** Runs the operations in order, in the transaction. */
async function perform(
  steps: readonly Step[],
  { deadline, bytes, recheck }: Bounds,
  on: OpenTransaction,
): Promise<Results> {
  const results: Results['results'][number][] = []
  const done: CompletedStep[] = []
  let size = 0
  for (const step of steps) {
    const { operation, index, run } = step
    const result = await about(operation, index, () => run(on))
    size += result.json.length
    if (size > bytes) throw answerTooLarge(bytes, 'Nothing was written. Request fewer rows or columns.')
    // The caller has already received a timeout, so the transaction must not be committed.
    if (performance.now() > deadline) throw fail('statement_timeout')
    results.push({ ...result, kind: operation.kind })
    done.push({ step, done: { affected: result.affected, json: [result.data] } })
  }
  await recheck()
  return { results, done }
}

/** Adds the operation's id and index to a failure. */
async function about<T>({ id }: Operation, index: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    throw withDetails(error, { operation_id: id, operation_index: index })
  }
}

type UnderKey = TransactionOptions & { readonly body: string; readonly bounds: Bounds }

/**
 * Claims the key in the same transaction, so that the response is stored exactly if the writes are committed. Concurrent requests wait for
 * the first one in the database.
 */
async function onceUnder(
  key: string,
  kernel: Kernel,
  caller: GatewayCaller,
  steps: readonly Step[],
  { body, bounds, isolation }: UnderKey,
): Promise<StoredAnswer> {
  const { backend, client, presence } = caller
  if (client.isLogging || client.isFrozen) throw fail('idempotency_unavailable')
  const idempotency = requireAbility(backend, 'idempotency')
  const at = kernel.now()
  const since = new Date(at.getTime() - STORED_FOR)
  const replay = async () => {
    const stored = await idempotency.find(key, since, presence)
    if (stored !== undefined && stored.body !== body) throw fail('idempotency_key_reused')
    const operations = steps.map(({ operation }) => operation)
    return stored && { json: replayedText(stored.answer, operations), done: [], replayed: true }
  }
  const known = await replay()
  if (known !== undefined) return known
  try {
    const results = await requireAbility(backend, 'transaction')(
      async (on) => {
        if (!(await idempotency.claim(on, key, { body, at, since }))) throw fail('write_conflict')
        const performed = await perform(steps, bounds, on)
        const answer = storedText(performed.results, kernel.config.limits.idempotent_answer)
        await idempotency.store(on, key, answer)
        return performed
      },
      { presence, ...(isolation !== undefined && { isolation }) },
    )
    return answeredBy(results, steps)
  } catch (error) {
    // A concurrent request with the same key has committed.
    const other = error instanceof Failure && error.code === 'write_conflict' ? await replay() : undefined
    if (other === undefined) throw error
    return other
  }
}
