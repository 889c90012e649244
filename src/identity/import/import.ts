import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { atomically, emit, type Kernel } from '#kernel/kernel.ts'
import type { Line } from '#kernel/lines.ts'
import { drawInAdvance } from '#kernel/random.ts'
import { type Added, addUsers, lookUpUsers, type UserToAdd } from '../add-users.ts'
import { takenField, uniqueOf } from '../custom-fields.ts'
import { tell } from '../tell.ts'
import { BadLine, FIELDS, fieldsOf, type Source, userFrom } from './record.ts'

type ImportOptions = {
  /** Checks the lines and compares them with the database; changes nothing. */
  readonly dryRun: boolean
  /** Adds users whose hash is too costly to check without it: they need a reset mail. Otherwise their line is bad. */
  readonly dropCostlyHashes?: boolean
  readonly onBadLine: (number: number, why: string) => void
  /** Filled during the import, so that a failed import has a report too. */
  readonly report?: ImportReport
}

export type ImportReport = {
  added: number
  /** Users whose email has an account, from an earlier run or another line. */
  alreadyThere: number
  bad: number
  /** Unknown members of lines. */
  readonly ignored: Set<string>
}

export const emptyReport = (): ImportReport => ({ added: 0, alreadyThere: 0, bad: 0, ignored: new Set() })

/** Users that one statement adds. */
const BATCH = 1_000

/** Random bytes that are drawn at once: for each id on its own they would take a third of the time. */
const DRAWN = 16_384

/**
 * Adds the users of a file in batches. An import that is killed has added whole users only, and continues when it is run again. A
 * bad line is reported and skipped.
 */
export async function importUsers(
  kernel: Kernel,
  lines: AsyncIterable<Line>,
  { dryRun, onBadLine, dropCostlyHashes = false, report = emptyReport() }: ImportOptions,
): Promise<ImportReport> {
  const complain = (number: number, why: string): void => {
    report.bad++
    onBadLine(number, why)
  }
  const finishBatch = async (batch: Batch): Promise<void> => {
    const users = batch.map(({ user }) => user)
    const outcomes = await (dryRun ? lookUpUsers(kernel.db, users) : addInTurn(kernel, users))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome === 'added') report.added++
      else if (outcome === 'email_taken') report.alreadyThere++
      else complain(batch[index]?.number ?? 0, TAKEN[outcome])
    }
  }
  const { config, now } = kernel
  const source = { config, now, random: drawInAdvance(kernel.random, DRAWN), dropCostlyHashes }
  for await (const batch of batchesOf(source, lines, { complain, ignored: report.ignored })) {
    await finishBatch(batch)
  }
  return report
}

/** An arbitrary number; no other advisory lock uses it. */
const LOCK = 7_462_002

/** Deadlocks and serialization failures: the batch was rolled back, as by a sign-up that takes the value of a unique field meanwhile. */
const AGAIN = new Set(['40P01', '40001'])
const TRIES = 5

/** Concurrent imports take turns, batch by batch. A concurrent sign-up can still cause a deadlock. */
async function addInTurn(kernel: Kernel, users: readonly UserToAdd[]): Promise<readonly Added[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await atomically(kernel, async (kernel) => {
        await sql`select pg_advisory_xact_lock(${LOCK})`.execute(kernel.db)
        const outcomes = await addUsers(kernel, users)
        const count = outcomes.filter((outcome) => outcome === 'added').length
        if (count > 0) await tell(kernel, 'user.imported', { count })
        for (const [index, user] of users.entries())
          if (outcomes[index] === 'added') await emit(kernel, 'auth_user_created', { user_id: user.id })
        return outcomes
      })
    } catch (error) {
      const { code } = Object(error) as { code?: string } // whatever was thrown
      const isAgain = AGAIN.has(code ?? '') || takenField(error) !== undefined
      if (tries === TRIES || !isAgain) throw error
      await sleep(100 * 2 ** tries)
    }
  }
}

type Batch = readonly { readonly number: number; readonly user: UserToAdd }[]

const TAKEN: Readonly<Record<Exclude<Added, 'added' | 'email_taken'>, string>> = {
  username_taken: 'the username belongs to a user with another email',
  field_taken: 'the value of a unique field belongs to another user',
  id_taken: 'the id belongs to a user with another email',
}

type Notes = { readonly complain: (number: number, why: string) => void; readonly ignored: Set<string> }

async function* batchesOf(source: Source, lines: AsyncIterable<Line>, notes: Notes): AsyncGenerator<Batch> {
  let batch: { number: number; user: UserToAdd }[] = []
  let keys = new Set<string>()
  for await (const line of lines) {
    const user = readLine(source, line, notes)
    if (user === undefined) continue
    const ofUser = keysOf(source, user)
    // A statement sorts its users, so its unique values must differ: the second line of two goes into the next batch.
    if (batch.length >= BATCH || ofUser.some((key) => keys.has(key))) {
      yield batch
      batch = []
      keys = new Set()
    }
    batch.push({ number: line.number, user })
    for (const key of ofUser) keys.add(key)
  }
  if (batch.length > 0) yield batch
}

const keysOf = ({ config }: Source, { id, email, username, fields }: UserToAdd): readonly string[] => [
  id,
  email,
  ...(username === null ? [] : [`@${username}`]),
  ...Object.entries(uniqueOf(config, fields) ?? {}).map((field) => JSON.stringify(field)),
]

/** Names of unknown members in the report: a file of another kind may have any number. */
const MAX_IGNORED = 20

function readLine(source: Source, line: Line, { complain, ignored }: Notes): UserToAdd | undefined {
  try {
    if ('problem' in line) throw new BadLine(line.problem)
    const fields = fieldsOf(line.text)
    for (const name of Object.keys(fields)) {
      const isKnown = FIELDS.has(name) || Object.hasOwn(source.config.auth.user.fields, name)
      if (!isKnown && ignored.size < MAX_IGNORED) ignored.add(name)
    }
    return userFrom(source, fields)
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    complain(line.number, error.message)
    return undefined
  }
}
