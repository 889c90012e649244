/**
 * The cases that the client has to pass in every runtime. They know nothing of it: no file, no process, no module but the built client. Each
 * takes what `startRuntimeService` says of the service.
 */
import { createClient, GatehouseError } from '../dist/client.js'
import { queryOptions } from '../dist/query.js'

/** Runs all cases, one after the other, and returns what became of each. */
export async function runCases(context) {
  const results = []
  for (const [name, run] of Object.entries(CASES)) {
    try {
      await run(toolsOf(context))
      results.push({ name })
    } catch (error) {
      results.push({ name, error: String(error?.stack ?? error) })
    }
  }
  return results
}

function toolsOf({ url, key, ada, bea, table }) {
  const clientOf = (user, more = {}) => createClient({ url, key, session: () => user?.token, ...more })
  const db = clientOf(ada)
  return {
    url,
    key,
    ada,
    bea,
    clientOf,
    db,
    cards: db.from(table),
    table,
    /** A table without rows. */
    async empty() {
      for (const user of [ada, bea]) await clientOf(user).from(table).delete().unbounded().orThrow()
    },
  }
}

const CASES = {
  async 'rows are written, read by conditions, order and page, changed and deleted'({ cards, empty }) {
    await empty()
    const made = await cards
      .insert([{ text: 'one' }, { text: 'two' }, { text: 'three' }])
      .select({ text: true })
    same(made.data, [{ text: 'one' }, { text: 'two' }, { text: 'three' }])
    const page = await cards
      .select({ text: true, title: 'text' })
      .where({ text: { neq: 'two' } })
      .order({ text: 'desc' })
      .page(2, 1)
      .count()
    same([page.data, page.count], [[{ text: 'one', title: 'one' }], 2])
    same((await cards.update({ amount: 5 }).eq('text', 'two').select('text,amount').single()).data, {
      text: 'two',
      amount: 5,
    })
    same((await cards.delete().where({ text: ['one', 'two'] })).count, 2)
    same(await cards.count().orThrow(), 1)
  },

  async 'every failure has its code, and orThrow throws it'({ cards, empty, clientOf, url, table }) {
    await empty()
    await cards.insert({ text: 'one' }).orThrow()
    const { data, error } = await cards.insert({ text: 'one' })
    same([data, error?.code, error?.status], [null, 'unique_violation', 409])
    const thrown = await cards
      .insert({ text: 'one' })
      .orThrow()
      .catch((error) => error)
    same(
      [thrown instanceof GatehouseError, thrown instanceof Error, thrown.code],
      [true, true, 'unique_violation'],
    )
    same((await cards.select({ nothing: true })).error?.code, 'unknown_column')
    // A port that nobody can listen on.
    const nowhere = clientOf(undefined, { url: url.replace(/:\d+$/, ':1') })
    same((await nowhere.from(table).insert({ text: 'x' })).error?.code, 'network')
    const leaving = new AbortController()
    leaving.abort()
    same((await cards.select().signal(leaving.signal)).error?.code, 'aborted')
    const slow = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    same((await clientOf(undefined, { fetch: slow }).from(table).select().timeout(1)).error?.code, 'timeout')
  },

  async 'numbers are exact where they are asked for so'({ clientOf, ada, table, empty }) {
    await empty()
    const exact = clientOf(ada, { numbers: 'exact' }).from(table)
    const row = { text: 'large', large: 9007199254740993n, amount: '0.10' }
    same((await exact.insert(row).select({ large: true, amount: true }).single()).data, {
      large: 9007199254740993n,
      amount: '0.10',
    })
    same((await exact.select({ text: true }).eq('large', 9007199254740993n)).data, [{ text: 'large' }])
  },

  async 'a member called __proto__ is one like others'({ cards, empty }) {
    await empty()
    await cards.insert({ text: 'one' }).orThrow()
    const [row] = await cards.select(JSON.parse('{ "text": true, "__proto__": "text" }')).orThrow()
    same(JSON.stringify(row), '{"text":"one","__proto__":"one"}')
    same(typeof row.toString, 'function')
  },

  async 'all rows come in batches'({ cards, empty }) {
    await empty()
    const texts = Array.from({ length: 23 }, (_, index) => String(index).padStart(2, '0'))
    await cards.insert(texts.map((text) => ({ text }))).orThrow()
    const read = []
    for await (const { text } of cards.select({ text: true }).order({ text: 'asc' }).all({ batch: 5 }))
      read.push(text)
    same(read, texts)
  },

  async 'a transaction does all or nothing'({ db, cards, empty }) {
    await empty()
    const failed = await db.transaction([cards.insert({ text: 'one' }), cards.insert({ text: 'one' })])
    same(failed.error?.code, 'unique_violation')
    same(await cards.count().orThrow(), 0)
    const done = await db.transaction([cards.insert({ text: 'one' }), cards.select({ text: true })])
    same(done.data?.[1], [{ text: 'one' }])
  },

  async 'users who are served in turn get their own rows'({ clientOf, ada, bea, table, empty }) {
    await empty()
    let user = ada
    const db = clientOf(undefined, { session: async () => user.token })
    for (user of [ada, bea])
      await db
        .from(table)
        .insert({ text: `of ${user.id}` })
        .orThrow()
    for (let turn = 0; turn < 10; turn++) {
      user = turn % 2 === 0 ? ada : bea
      same(await db.from(table).select({ text: true }).orThrow(), [{ text: `of ${user.id}` }])
    }
  },

  async 'live rows are those of a fetch, also after a break'({ clientOf, ada, table, cards, empty }) {
    await empty()
    await cards.insert({ text: 'one' }).orThrow()
    let cut = new AbortController()
    const cuttable = (input, init) =>
      fetch(input, { ...init, signal: AbortSignal.any([init.signal, cut.signal]) })
    const states = []
    const close = clientOf(ada, { fetch: cuttable })
      .from(table)
      .select({ text: true })
      .live((state) => states.push(state))
    const shows = (...texts) =>
      until(
        () => {
          const { status, rows } = states.at(-1) ?? {}
          return status === 'live' && rows.map(({ text }) => text).join() === texts.join()
        },
        () => JSON.stringify(states.at(-1)),
      )
    await shows('one')
    same(states[0], { rows: [], status: 'loading', error: undefined })
    await cards.insert({ text: 'two' }).orThrow()
    await shows('one', 'two')
    cut.abort()
    cut = new AbortController()
    await cards.delete().eq('text', 'one').orThrow()
    await shows('two')
    close()
    const { length } = states
    await cards.insert({ text: 'three' }).orThrow()
    same(states.length, length)
  },

  async 'a stream that is refused says why'({ clientOf, ada, table }) {
    const states = []
    clientOf(ada, { key: 'svc_0123456789abcdef.none' })
      .from(table)
      .select()
      .live((state) => states.push(state))
    await until(() => states.at(-1)?.error?.code === 'invalid_api_key')
    clientOf(ada)
      .from(table)
      .select()
      .limit(5)
      .live((state) => states.push(state))
    await until(() => states.at(-1)?.error?.code === 'not_live')
    same(states.at(-1).status, 'stale')
  },

  async 'options of a query name the user, and neither key nor token'({ clientOf, ada, bea, key, table }) {
    const of = (user) => queryOptions(clientOf(user).from(table).select({ text: true }))
    const [adas, beas] = [of(ada), of(bea)].map(({ queryKey }) => JSON.stringify(queryKey))
    same(adas === JSON.stringify(of(ada).queryKey), true)
    same(adas === beas, false)
    same(
      [ada.token, bea.token, key, key.split('.')[1]].some((secret) => (adas + beas).includes(secret)),
      false,
    )
    const rows = await of(ada).queryFn({ signal: new AbortController().signal })
    same(Array.isArray(rows), true)
  },
}

/** Compares values as JSON, with bigints and `undefined` apart. */
function same(actual, expected) {
  const [one, other] = [actual, expected].map((value) => JSON.stringify(sorted(value)))
  if (one !== other) throw new Error(`${one} is not ${other}`)
}

function sorted(value) {
  if (value === undefined) return { undefined: true }
  if (typeof value === 'bigint') return { bigint: String(value) }
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)])
  return members.sort(([one], [other]) => (one < other ? -1 : 1))
}

async function until(condition, describe = () => '') {
  for (let turn = 0; !condition(); turn++) {
    if (turn === 3_000) throw new Error(`it did not become so within 30 seconds: ${describe()}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
