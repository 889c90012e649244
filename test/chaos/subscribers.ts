import { ROUTES } from './routes.ts'
import { CLOSED_TEAM, HIDDEN, type People, type TableOf, textOf } from './statements.ts'
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
    /** Rows whose `n` is greater. */
    readonly conditions?: typeof HIGH
  }[]
  /** By a ticket, as EventSource does. */
  readonly byTicket?: boolean
  /** Through this public route. */
  readonly route?: string
  /** Texts that must not be in the bytes of its streams. */
  readonly forbidden: readonly string[]
  /** Whether its caller may see a row of the table, whatever the conditions. */
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
      mayBe: always,
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
      mayBe: always,
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
      mayBe: ({ owner, team }, table) => owner === bea || (table === 'doc' && team !== CLOSED_TEAM),
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
    {
      name: 'gifts of eve by a JWT',
      caller: 'eve',
      tables: [{ table_name: 'gift' }],
      forbidden: ['fay', ada].map(textOf.gift),
      mayBe: ({ owner }) => owner === 'eve',
    },
    {
      name: 'high gifts of fay by a JWT and a ticket',
      caller: 'fay',
      byTicket: true,
      tables: [{ table_name: 'gift', conditions: HIGH }],
      forbidden: ['eve', ada].map(textOf.gift),
      mayBe: ({ owner }) => owner === 'fay',
    },
    {
      name: 'items and gifts of ada by the JWT of her session',
      caller: 'ada by a JWT',
      tables: [{ table_name: 'item' }, { table_name: 'gift' }],
      forbidden: [...items(bea, dan), ...['eve', 'fay'].map(textOf.gift)],
      mayBe: ({ owner }) => owner === ada,
    },
    {
      name: 'high docs of anyone through a route',
      caller: 'anyone',
      route: ROUTES.docs.route_key,
      tables: [{ table_name: 'doc', conditions: HIGH }],
      forbidden: ['doc:'],
      mayBe: ({ n, owner }) => (n % 2 === 1 || n % 3 === 1) && owner === undefined,
    },
    {
      name: 'gifts of anyone through a route of the record’s',
      caller: 'anyone',
      route: ROUTES.gifts.route_key,
      tables: [{ table_name: 'gift' }],
      forbidden: [],
      mayBe: ({ n, owner }) => n > 2 && owner === undefined,
    },
    {
      name: 'items of ada through a route',
      caller: 'ada without a key',
      route: ROUTES.items.route_key,
      tables: [{ table_name: 'item' }],
      forbidden: items(bea, dan),
      mayBe: ({ owner }) => owner === ada,
    },
  ]
}

/** So many more, of the same callers, with conditions that some share. Without the long texts. */
export const crowdOf = (people: People, size: number): readonly Subscriber[] => {
  const kinds = subscribersOf(people)
  return Array.from({ length: size }, (_, index) => {
    const kind = kinds[index % kinds.length] as Subscriber // never empty
    const conditions = { ...HIGH, value: Math.floor(index / kinds.length) % 10 }
    return {
      ...kind,
      name: `${kind.name}, number ${index}`,
      tables: kind.tables.map(({ table_name, columns }) => ({
        table_name,
        conditions,
        ...(table_name === 'log' ? { columns: ['id', 'n', 'v'] } : columns && { columns }),
      })),
    }
  })
}
