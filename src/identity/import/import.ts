import type { Kernel } from '#kernel/kernel.ts'
import type { Random } from '#kernel/random.ts'
import { type Added, addUsers, lookUpUsers, type UserToAdd } from '../add-users.ts'
import type { Line } from './lines.ts'
import { BadLine, FIELDS, fieldsOf, type Source, userFrom } from './record.ts'

export type ImportOptions = {
  /** Checks the lines and looks at what is there, and changes nothing. */
  readonly dryRun: boolean
  /** Users whose hash takes too long to check are added without it, and need a reset mail; else their line is bad. */
  readonly dropCostlyHashes?: boolean
  readonly onBadLine: (number: number, why: string) => void
}

export type ImportReport = {
  readonly added: number
  /** Somebody has the email already: of an earlier run, or of another line. */
  readonly alreadyThere: number
  readonly bad: number
  /** Members of lines that mean nothing here. */
  readonly ignored: ReadonlySet<string>
}

/** Users that one statement adds. */
const BATCH = 1_000

/**
 * Adds the users of a file, batch by batch: one that is killed has added whole users only, and running it again goes on
 * where it stopped. A line that is bad is named and left out.
 */
export async function importUsers(
  kernel: Kernel,
  lines: AsyncIterable<Line>,
  { dryRun, onBadLine, dropCostlyHashes = false }: ImportOptions,
): Promise<ImportReport> {
  const report = { added: 0, alreadyThere: 0, bad: 0, ignored: new Set<string>() }
  const complain = (number: number, why: string): void => {
    report.bad++
    onBadLine(number, why)
  }
  const settle = async (batch: Batch): Promise<void> => {
    const users = batch.map(({ user }) => user)
    const outcomes = await (dryRun ? lookUpUsers(kernel.db, users) : addUsers(kernel.db, users))
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome === 'added') report.added++
      else if (outcome === 'email_taken') report.alreadyThere++
      else complain(batch[index]?.number ?? 0, TAKEN[outcome])
    }
  }
  const source = { now: kernel.now, random: inBulk(kernel.random), dropCostlyHashes }
  for await (const batch of batchesOf(source, lines, { complain, ignored: report.ignored }))
    await settle(batch)
  return report
}

type Batch = readonly { readonly number: number; readonly user: UserToAdd }[]

const TAKEN: Readonly<Record<Exclude<Added, 'added' | 'email_taken'>, string>> = {
  username_taken: 'the username belongs to somebody with another email',
  id_taken: 'the id belongs to somebody with another email',
}

type Notes = { readonly complain: (number: number, why: string) => void; readonly ignored: Set<string> }

async function* batchesOf(source: Source, lines: AsyncIterable<Line>, notes: Notes): AsyncGenerator<Batch> {
  let batch: { number: number; user: UserToAdd }[] = []
  let ids = new Set<string>()
  for await (const line of lines) {
    const user = readLine(source, line, notes)
    if (user === undefined) continue
    // Ids of one statement must differ; the second meets the first in the database.
    if (batch.length >= BATCH || ids.has(user.id)) {
      yield batch
      batch = []
      ids = new Set()
    }
    batch.push({ number: line.number, user })
    ids.add(user.id)
  }
  if (batch.length > 0) yield batch
}

/** Draws for hundreds of ids at once: one by one they would take a third of the time. */
function inBulk(random: Random): Random {
  let drawn = random(0)
  return (bytes) => {
    if (drawn.length < bytes) drawn = random(Math.max(bytes, 16_384))
    const taken = drawn.subarray(0, bytes)
    drawn = drawn.subarray(bytes)
    return taken
  }
}

/** The most names of unknown members that are kept: a file of another kind may have any number. */
const MOST_IGNORED = 20

function readLine(source: Source, line: Line, { complain, ignored }: Notes): UserToAdd | undefined {
  try {
    if ('problem' in line) throw new BadLine(line.problem)
    const fields = fieldsOf(line.text)
    for (const name of Object.keys(fields)) {
      if (!FIELDS.has(name) && ignored.size < MOST_IGNORED) ignored.add(name)
    }
    return userFrom(source, fields)
  } catch (error) {
    if (!(error instanceof BadLine)) throw error
    complain(line.number, error.message)
    return undefined
  }
}
