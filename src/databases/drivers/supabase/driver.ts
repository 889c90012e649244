import { type CatalogueCache, createCatalogueCache } from '#databases/drivers/catalogue-cache.ts'
import type { Driver, OpenTransaction, Presence } from '#databases/drivers/driver.ts'
import { createPlanner, type Planner } from '#databases/drivers/planner.ts'
import { callFunction } from '#databases/drivers/supabase/call.ts'
import { hasMoved } from '#databases/drivers/supabase/errors.ts'
import { createExchange, type Exchange, type ExchangeOptions } from '#databases/drivers/supabase/exchange.ts'
import { refuse } from '#databases/drivers/supabase/grammar.ts'
import { type OpenApiCatalogue, readOpenApi } from '#databases/drivers/supabase/openapi.ts'
import { countRows, type RowLimit, selectRows, unknownRowLimit } from '#databases/drivers/supabase/read.ts'
import { writeRows } from '#databases/drivers/supabase/write.ts'
import { fail } from '#databases/failures.ts'
import type { WritePlan } from '#databases/plan/plan.ts'

type SupabaseOptions = ExchangeOptions & {
  readonly readOnly: boolean
  /** Rows that the answer of an update or delete holds at most (`gateway.max_rows`). */
  readonly maxRows: number
  readonly close: () => Promise<void>
}

/** A PostgREST endpoint, such as Supabase's. Unsupported operations are refused as `unsupported_by_driver`. */
export function createSupabaseDriver(options: SupabaseOptions): Driver {
  const exchange = createExchange(options)
  const { of, invalidate } = schemas(async (schema) => readOpenApi(schema, await exchange.describe(schema)))

  /** Its requests are aborted when their caller leaves. */
  const whilePresent = (presence: Presence | undefined): Exchange =>
    presence === undefined
      ? exchange
      : {
          ...exchange,
          run: (request) => exchange.run(request, presence.signal()),
        }

  async function write(planned: WritePlan, _on?: OpenTransaction, presence?: Presence) {
    if (options.readOnly) throw fail('read_only')
    const { tables, attempt } = of(planned.table.schema)
    return attempt(planned, async (plan) =>
      writeRows(
        { exchange: whilePresent(presence), catalogue: await tables.current(), maxRows: options.maxRows },
        plan,
      ),
    )
  }

  return {
    name: 'supabase',
    plan: (request, rights) => of(request.table.schema).plan(request, rights),
    select(planned, _on, presence) {
      const { tables, attempt, rowLimit } = of(planned.table.schema)
      return attempt(planned, async (plan) =>
        selectRows(
          {
            exchange: whilePresent(presence),
            catalogue: await tables.current(),
            rowLimit,
            maxRows: options.maxRows,
          },
          plan,
        ),
      )
    },
    count(planned, _on, presence) {
      const { attempt } = of(planned.table.schema)
      return attempt(planned, (plan) => countRows(whilePresent(presence), plan))
    },
    insert: write,
    update: write,
    delete: write,
    async call(request) {
      const { tables } = of(request.read.table.schema)
      const readOnly = request.readOnly || options.readOnly
      return callFunction({ exchange, catalogue: await tables.current() }, { ...request, readOnly })
    },
    catalogue: () => of(DEFAULT_SCHEMA).tables.fresh(),
    invalidate,
    // PostgREST does not identify its database.
    identity: async () => undefined,
    async probe() {
      await exchange.probe()
      return (await of(DEFAULT_SCHEMA).tables.current()).version
    },
    stats: exchange.stats,
    close: options.close,
  }
}

const DEFAULT_SCHEMA = 'public'

type Schema = Planner & { readonly tables: CatalogueCache<OpenApiCatalogue>; readonly rowLimit: RowLimit }

/** PostgREST describes one schema at a time, and a request reaches only one. */
function schemas(read: (schema: string) => Promise<OpenApiCatalogue>) {
  const known = new Map<string, Schema>()
  const open = (schema: string): Schema => {
    const tables = createCatalogueCache(() => read(schema))
    const opened = { tables, rowLimit: unknownRowLimit(), ...createPlanner(tables, hasMoved) }
    // Names come from requests. Few schemas are exposed, and unknown names must not accumulate.
    const [oldest] = known.size >= MAX_SCHEMAS ? known.keys() : []
    if (oldest !== undefined) known.delete(oldest)
    known.set(schema, opened)
    return opened
  }
  return {
    of: (schema: string): Schema => known.get(schema) ?? open(carried(schema)),
    invalidate: () => {
      for (const { tables } of known.values()) tables.invalidate()
    },
  }
}

const MAX_SCHEMAS = 100

/** The name is sent in a header, which is ASCII and trimmed. A changed name must not select another schema. */
function carried(schema: string): string {
  if (/^[\x20-\x7e]{1,63}$/.test(schema) && schema.trim() === schema) return schema
  throw refuse('a schema name that a header cannot carry')
}
