import { CLOSED_TEAM, HIDDEN, type People, type TableOf } from './statements.ts'
import type { CallerName } from './world.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of every table
export type AnyRow = any

/** A page that follows tables, and what its caller may never be shown. */
export type Subscriber = {
  readonly name: string
  readonly caller: CallerName
  readonly tables: readonly {
    readonly table_name: TableOf
    readonly columns?: readonly string[]
    readonly conditions?: object
  }[]
  /** By a ticket, as EventSource does. */
  readonly byTicket?: boolean
  /** Texts that must not be in the bytes of its streams. */
  readonly forbidden: readonly string[]
  /** Whether a row of the table that is shown may be. */
  readonly mayBe: (row: AnyRow, table: TableOf) => boolean
}

const HIGH = { operator: 'gt', column: 'n', value: 4 }
const always = () => true

export function subscribersOf({
  ada,
  bea,
  dan,
  organizations: [first, second, other],
}: People): readonly Subscriber[] {
  const items = (...owners: string[]) => owners.map((owner) => `item:${owner};`)
  const closed = (...owners: string[]) => owners.map((owner) => `doc:${owner}:t${CLOSED_TEAM}:`)
  return [
    { name: 'every doc', caller: 'admin', tables: [{ table_name: 'doc' }], forbidden: [], mayBe: always },
    {
      name: 'high docs and items, without texts',
      caller: 'admin',
      tables: [
        { table_name: 'doc', columns: ['id', 'n'], conditions: HIGH },
        { table_name: 'item', columns: ['id', 'n'], conditions: HIGH },
      ],
      forbidden: ['doc:', 'item:'],
      mayBe: ({ n }) => n > 4,
    },
    {
      name: 'the log of a key',
      caller: 'reader',
      tables: [{ table_name: 'log', columns: ['id', 'n', 'text', 'v'] }],
      forbidden: [HIDDEN],
      mayBe: always,
    },
    {
      name: 'the high log by a ticket',
      caller: 'reader',
      byTicket: true,
      tables: [{ table_name: 'log', columns: ['id', 'n', 'v'], conditions: HIGH }],
      forbidden: [HIDDEN, 'xxxxxxxxxx'],
      mayBe: ({ n }) => n > 4,
    },
    {
      name: 'docs of ada',
      caller: 'ada',
      tables: [{ table_name: 'doc' }],
      forbidden: closed(bea, dan),
      mayBe: ({ owner, team }) => owner === ada || team !== CLOSED_TEAM,
    },
    {
      name: 'items of ada by a ticket',
      caller: 'ada',
      byTicket: true,
      tables: [{ table_name: 'item' }],
      forbidden: items(bea, dan),
      mayBe: ({ owner }) => owner === ada,
    },
    {
      name: 'docs and items of bea',
      caller: 'bea',
      tables: [{ table_name: 'doc', conditions: HIGH }, { table_name: 'item' }],
      forbidden: [...closed(ada, dan), ...items(ada, dan)],
      mayBe: ({ owner, n }, table) => (table === 'item' ? owner === bea : n > 4),
    },
    {
      name: 'tasks of the organization of cem',
      caller: 'cem',
      tables: [{ table_name: 'task' }],
      forbidden: [`task:${other};`],
      mayBe: ({ organization_id }) => [first, second].includes(organization_id),
    },
    {
      name: 'items of dan',
      caller: 'dan',
      tables: [{ table_name: 'item' }],
      forbidden: items(ada, bea),
      mayBe: ({ owner }) => owner === dan,
    },
    {
      name: 'docs of a stranger',
      caller: 'stranger',
      tables: [{ table_name: 'doc' }],
      forbidden: [0, 2, 6, 8].map((n) => `:n${n};`),
      mayBe: ({ n }) => n % 2 === 1 || n % 3 === 1,
    },
  ]
}
