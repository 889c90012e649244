import { sql } from 'kysely'
import type { Coherence } from '../db/coherence.ts'
import { createTaggedCache } from '../db/coherent-cache.ts'
import type { Db } from '../db/connect.ts'
import { type PipelinedStatements, preparedStatement } from '../db/pipelined-statements.ts'
import { EVENTS, type EventName } from '../events.ts'
import { eventsOf } from './route-keys.ts'

/** An active webhook, as far as it decides which events it gets. */
export type Subscription = {
  readonly id: string
  /** Null: events of the authentication surface. */
  readonly clientName: string | null
  readonly routeKeys: readonly string[]
  /** `schema.table` */
  readonly tableName: string | null
  /** JSON text of conditions on the rows. */
  readonly filter: string | null
}

/** The facts of an event that decide, besides its rows. */
export type Occasion = {
  readonly name: EventName
  /** Null on the authentication surface. */
  readonly client: string | null
  /** Undefined for events without a table. */
  readonly table: string | undefined
}

type Subscriptions = {
  /** Webhooks for such an event. Without a promise, and by one look-up, while the cache is trusted. `db` may be a transaction. */
  to(occasion: Occasion, db: Db): readonly Subscription[] | Promise<readonly Subscription[]>
}

export function createSubscriptions(parts: {
  readonly pipelined: PipelinedStatements
  readonly coherence: Coherence
}): Subscriptions {
  const { pipelined, coherence } = parts
  const cache = createTaggedCache<Index>({ coherence, max: 1, tags: () => ['webhook'] })
  const load = () => cache.get('all', async () => indexOf(await pipelined.query(ACTIVE, [])))
  let isLoading = false

  /** For the next events. */
  function loadMeanwhile(): void {
    if (isLoading) return
    isLoading = true
    load()
      .catch(() => {})
      .finally(() => {
        isLoading = false
      })
  }

  return {
    to(occasion, db) {
      const index = cache.peek('all')
      if (index !== undefined) return index.size === 0 ? NONE : found(index, occasion)
      if (!db.isTransaction) return load().then((loaded) => found(loaded, occasion))
      // By the transaction's own connection: with a pooler, transactions may hold all others. Not cached, since the
      // transaction may have changed webhooks itself.
      loadMeanwhile()
      return sql
        .raw<Subscription>(ACTIVE.text)
        .execute(db)
        .then(({ rows }) => found(indexOf(rows), occasion))
    },
  }
}

const ACTIVE = preparedStatement<Subscription>(
  `select id, client_name as "clientName", route_keys as "routeKeys", table_name as "tableName", filter
    from service.webhook where is_active and deleted_at is null`,
)

/** By event and client, then by table: an event looks at no webhook of another table. */
type Index = ReadonlyMap<string, ReadonlyMap<string | null, readonly Subscription[]>>

const NONE: readonly Subscription[] = []

const indexKey = (name: string, client: string | null): string => `${name} ${client ?? ''}`

function indexOf(subscriptions: readonly Subscription[]): Index {
  const index = new Map<string, Map<string | null, Subscription[]>>()
  for (const subscription of subscriptions) {
    for (const name of namesOf(subscription)) {
      const key = indexKey(name, subscription.clientName)
      const byTable = index.get(key) ?? new Map<string | null, Subscription[]>()
      index.set(key, byTable)
      const others = byTable.get(subscription.tableName)
      if (others === undefined) byTable.set(subscription.tableName, [subscription])
      else others.push(subscription)
    }
  }
  return index
}

/** Events of users never belong to a client. */
const namesOf = ({ routeKeys, clientName }: Subscription): readonly EventName[] =>
  eventsOf(routeKeys).filter((name) => (EVENTS[name].category === 'auth') === (clientName === null))

function found(index: Index, { name, client, table }: Occasion): readonly Subscription[] {
  const byTable = index.get(indexKey(name, client))
  const ofAll = byTable?.get(null) ?? NONE
  const ofTable = (table !== undefined && byTable?.get(table)) || NONE
  return ofTable.length === 0 ? ofAll : [...ofAll, ...ofTable]
}
