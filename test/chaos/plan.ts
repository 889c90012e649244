import { type Chooser, chooser } from '#test/chooser.ts'
import { copied, type People, POLICIES, STRUCTURES, statement, textOf } from './statements.ts'

/** What a writer does next. */
export type Act =
  | { readonly way: 'gateway'; readonly method: string; readonly path: string; readonly body: object }
  /** One session past the gateway, with a wait in milliseconds before each statement. */
  | { readonly way: 'session'; readonly statements: readonly string[]; readonly waits: readonly number[] }
  /** Transactions that are prepared one after the other, each by a session of its own, and ended by others in the other order. */
  | { readonly way: 'prepared'; readonly parts: readonly PreparedPart[]; readonly wait: number }
  | { readonly way: 'copy'; readonly into: string; readonly rows: string }
  | { readonly way: 'psql'; readonly options: readonly string[]; readonly script: string }
  | { readonly way: 'structure'; readonly there: string; readonly back: string; readonly wait: number }
  | { readonly way: 'rights'; readonly of: (typeof RIGHTS)[number] }

const RIGHTS = ['organization', 'membership', 'session', 'ban', 'key', 'route'] as const

type PreparedPart = { readonly statements: readonly string[]; readonly ends: 'commit' | 'rollback' }

export const FAULTS = [
  'cut',
  'cut one',
  'hold',
  'reset the database’s connections',
  'freeze',
  'terminate',
] as const
export const KILLS = [
  'kill a worker',
  'kill a service',
  'stop a service',
  'crash the database',
  'kill everything',
] as const

export type PlannedFault = {
  readonly name: (typeof FAULTS)[number] | (typeof KILLS)[number]
  /** So many acts of the burst come before it. */
  readonly after: number
  /** Which service or subscriber, modulo their number. */
  readonly whom: number
}

/** What a seed stands for. Its timing is not part of it. */
export type Plan = {
  readonly seed: number
  /** Pages beside those that are always there. */
  readonly crowd: number
  readonly bursts: readonly { readonly writers: readonly Act[][]; readonly faults: readonly PlannedFault[] }[]
}

const BURSTS = 2
/** Acts of one writer in a burst. */
const ACTS = 7

/** With the others, five hundred. */
const CROWD = 484

/** `kills`, `crowds`: every so many seeds, processes are killed, and there is a crowd. */
export function planOf(seed: number, people: People, kills = 8, crowds = 35): Plan {
  const choose = chooser(seed)
  const isDeadly = seed % kills === 0
  return {
    seed,
    crowd: seed % crowds === Math.floor(crowds / 2) ? CROWD : 0,
    bursts: Array.from({ length: BURSTS }, () => ({
      writers: WRITERS.map((write) => Array.from({ length: ACTS }, () => write(choose, people))),
      faults: faultsOf(choose, isDeadly),
    })),
  }
}

function faultsOf({ below, of }: Chooser, isDeadly: boolean): readonly PlannedFault[] {
  const fault = (name: PlannedFault['name']) => ({
    name,
    after: below(ACTS * WRITERS.length),
    whom: below(1_000),
  })
  const mild = Array.from({ length: below(4) }, () => fault(of(FAULTS)))
  const all = isDeadly ? [...mild, fault(of(KILLS))] : mild
  return all.toSorted((one, other) => one.after - other.after)
}

type Writer = (choose: Chooser, people: People) => Act

const some = (choose: Chooser, people: People, most: number): readonly string[] =>
  Array.from({ length: 1 + choose.below(most) }, () => statement(choose, people))

/** With parts that are taken back. */
const withSavepoints = (choose: Chooser, people: People): readonly string[] => [
  statement(choose, people),
  'savepoint s',
  statement(choose, people),
  choose.of(['rollback to s', 'release s']),
  statement(choose, people),
]

const session = (choose: Chooser, statements: readonly string[], wait: number): Act => ({
  way: 'session',
  statements,
  waits: statements.map(() => choose.below(wait)),
})

/** With the ways in which psql makes transactions of a script, and its own COPY. */
const throughPsql = (choose: Chooser, people: People): Act => {
  const { into, rows } = copied(choose, people)
  const lines = (...statements: readonly string[]) => statements.map((one) => `${one};\n`).join('')
  const [options, script] = choose.of([
    [['-v', 'ON_ERROR_STOP=1', '-1'], lines(...some(choose, people, 3))],
    [['-v', 'ON_ERROR_ROLLBACK=on'], lines('begin', ...withSavepoints(choose, people), 'commit')],
    [[], lines(...some(choose, people, 2))],
    [[], `\\copy ${into} from stdin\n${rows}\\.\n`],
  ] as const)
  return { way: 'psql', options, script }
}

const query = (text: string): Act => ({
  way: 'gateway',
  method: 'POST',
  path: '/gateway/query',
  body: { query: text },
})

const WRITERS: readonly Writer[] = [
  (choose, people) => throughGateway(choose, people),
  (choose, people) =>
    choose.below(3) === 0
      ? query(withSavepoints(choose, people).join('; '))
      : query(some(choose, people, 2).join('; ')),
  // Bulks: single statements, COPY, and commits that a crash may lose after others have seen them.
  (choose, people) => {
    const luck = choose.below(4)
    if (luck === 0) return { way: 'copy', ...copied(choose, people) }
    if (luck === 2) return throughPsql(choose, people)
    const lost = () => ['begin', 'set local synchronous_commit = off', ...some(choose, people, 3), 'commit']
    return session(choose, luck === 1 ? lost() : [statement(choose, people)], 4)
  },
  (choose, people) =>
    session(
      choose,
      ['begin', ...withSavepoints(choose, people), choose.of(['commit', 'commit', 'rollback'])],
      // Some are open while the changes of others are read several times.
      choose.below(8) === 0 ? 300 : 40,
    ),
  (choose, people) => ({
    way: 'prepared',
    parts: Array.from({ length: 1 + choose.below(2) }, () => ({
      statements: some(choose, people, 3),
      ends: choose.of(['commit', 'commit', 'rollback']),
    })),
    wait: choose.below(60),
  }),
  (choose, people) => {
    const luck = choose.below(20)
    if (luck === 0) {
      const { there, back } = choose.of(STRUCTURES)
      return { way: 'structure', there, back, wait: choose.below(300) }
    }
    if (luck < 3) return session(choose, [choose.of(POLICIES)], 4)
    if (luck < 6) return { way: 'rights', of: choose.of(RIGHTS) }
    return session(choose, [statement(choose, people)], 20)
  },
]

function throughGateway({ below, of }: Chooser, { ada, bea }: People): Act {
  const [id, n, owner, team] = [below(40), below(10), of([ada, bea]), below(4)]
  const row = { owner, team, n, text: textOf.doc(owner, team, n) }
  const conditions = [{ column: 'id', value: id }]
  const gateway = (method: string, path: string, body: object): Act => ({
    way: 'gateway',
    method,
    path: `/gateway/${path}`,
    body: { table_name: 'doc', ...body },
  })
  return of([
    gateway('PUT', 'insert', { insert_body: { id, ...row } }),
    gateway('POST', 'update', { set: row, conditions }),
    gateway('POST', 'delete', { conditions }),
    gateway('PUT', 'insert', { table_name: 'log', insert_body: { n, text: 'by the gateway' } }),
  ])
}
