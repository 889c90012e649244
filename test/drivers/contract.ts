import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { requireAbility } from '#databases/drivers/abilities.ts'
import type { Driver, OpenTransaction } from '#databases/drivers/driver.ts'
import { ALWAYS_PRESENT } from '#databases/drivers/presence.ts'
import { EVERY_RIGHT } from '#databases/plan/rights.ts'
import type { Body } from '#databases/request/fields.ts'
import { parseJson } from '#databases/request/json.ts'
import { readFetch, readInsert } from '#databases/request/read-request.ts'
import type { Json } from '#databases/request/request.ts'
import { type Calls, createCalls, limits } from '#test/drivers/calls.ts'

/**
 * A driver under test. The contract runs on empty tables `authors` and `books` with generated keys from 1, which the driver's own test
 * creates.
 */
export type Subject = {
  readonly driver: () => Driver
  readonly reset: () => Promise<void>
  /** Features that the backend does not support. The driver must reject exactly these with 400 `unsupported_by_driver`. */
  readonly cannot?: readonly Feature[]
  /** Rules that its tables do not support. */
  readonly without?: readonly Rule[]
  /** Calls that add keys to rows, if the database does not generate them. */
  readonly calls?: Calls
  /** Key columns of a book in addition to its title, if the title cannot be unique. */
  readonly key?: { readonly columns: readonly string[]; readonly ofOne: Body }
  /** Number of rows of a large insert. */
  readonly many?: number
}

/** Check constraints, lengths and foreign keys; default values for missing columns. */
export type Rule = 'constraints' | 'defaults'

/** An operator of the condition grammar, or a feature that an example of the contract needs. */
export type Feature =
  | ('eq' | 'neq' | 'gt' | 'gte' | 'lt' | 'lte' | 'like' | 'ilike' | 'is' | 'in' | 'or' | 'not' | 'fts')
  | ('contains' | 'containedBy' | 'overlaps' | 'cast' | 'paging' | 'relations' | 'planned count')
  | (
      | 'json'
      | 'free writes'
      | 'column of a check'
      | 'conflict'
      | 'update_body'
      | 'limited writes'
      | 'transaction'
      | 'idempotency'
      | 'sql'
      | 'call'
      | 'run'
      | 'indexes'
    )

type Wrong = [
  call: () => Promise<unknown>,
  expected: { code: string; status: number },
  column?: string | undefined,
  needed?: Feature,
]

const refused = { code: 'unsupported_by_driver', status: 400 }

export function driverContract(subject: Subject): void {
  const { fetch, insert, update, remove, count } = subject.calls ?? createCalls(subject.driver)
  const { columns: unique, ofOne } = subject.key ?? { columns: ['title'], ofOne: {} }
  const one = { ...ofOne, title: 'one' }
  const titles = async (body: Body) => {
    const { rows } = await fetch({ table: 'books', columns: 'title', sort_by: 'id', ...body })
    return rows.map((row: { title: string }) => row.title)
  }
  const lacks = (feature: unknown) =>
    [...(subject.cannot ?? []), ...(subject.without ?? [])].some((lacking) => lacking === feature)
  /** If the driver does not support the feature, the example expects a rejection. */
  const example = (name: string, run: (context: TestContext) => Promise<void>, feature?: Feature) =>
    test(lacks(feature) ? `rejected: ${name}` : name, async (context) => {
      await subject.reset()
      await insert('authors', [{ name: 'Ada' }, { name: 'Brontë' }])
      await insert('books', [
        { title: 'one', author_id: 1, pages: 10, tags: ['a', 'b'], meta: { k: 1 }, active: true },
        { title: 'two', author_id: 2, pages: 20, tags: ['b'], meta: null, active: false },
        { title: 'three', author_id: 1, pages: 30, tags: [], meta: 'text', active: null },
      ])
      if (lacks(feature)) await assert.rejects(run(context), refused)
      else await run(context)
    })

  example('every operator of the condition grammar matches its rows', async () => {
    const found: [Body, string[]][] = [
      [{ column: 'pages', value: 20 }, ['two']],
      [{ eq_column: 'pages', eq_value: '20' }, ['two']],
      [{ operator: 'neq', column: 'pages', value: 20 }, ['one', 'three']],
      [{ operator: 'gt', column: 'pages', value: 10 }, ['two', 'three']],
      [{ operator: 'gte', column: 'pages', value: 20 }, ['two', 'three']],
      [{ operator: 'lt', column: 'pages', value: 20 }, ['one']],
      [{ operator: 'lte', column: 'pages', value: '20' }, ['one', 'two']],
      [{ operator: 'like', column: 'title', value: 't%' }, ['two', 'three']],
      [{ operator: 'ilike', column: 'title', value: 'T%' }, ['two', 'three']],
      [{ operator: 'is', column: 'active', value: 'true' }, ['one']],
      [{ operator: 'is', column: 'active', value: null }, ['three']],
      [{ operator: 'is', column: 'active', value: 'unknown' }, ['three']],
      [{ operator: 'eq', column: 'active', value: null }, ['three']],
      [{ operator: 'neq', column: 'active', value: null }, ['one', 'two']],
      [{ operator: 'in', column: 'pages', value: [10, 30, 99] }, ['one', 'three']],
      [{ operator: 'in', column: 'pages', value: [] }, []],
      [{ operator: 'in', column: 'active', value: [false, null] }, ['two', 'three']],
      [{ operator: 'contains', column: 'tags', value: ['b'] }, ['one', 'two']],
      [{ operator: 'containedBy', column: 'tags', value: ['b', 'c'] }, ['two', 'three']],
      [{ operator: 'overlaps', column: 'tags', value: ['a', 'c'] }, ['one']],
      [{ operator: 'contains', column: 'meta', value: { k: 1 } }, ['one']],
      [{ operator: 'fts', column: 'title', value: 'two' }, ['two']],
      [{ operator: 'or', value: 'pages.eq.10,and(pages.eq.30,active.is.null)' }, ['one', 'three']],
      [{ operator: 'not', value: 'pages.eq.10' }, ['two', 'three']],
      [{ column: 'pages', column_cast: 'text', value: '20' }, ['two']],
      [{ column: 'pages', value: '20', value_cast: 'bigint' }, ['two']],
    ]
    for (const [condition, expected] of found) {
      const read = () => titles({ conditions: [condition] })
      if (lacks(featureOf(condition))) await assert.rejects(read(), refused, JSON.stringify(condition))
      else assert.deepEqual(await read(), expected, JSON.stringify(condition))
    }
  })

  example('conditions are joined by AND, and structured conditions match the same rows', async () => {
    const conditions = [
      { operator: 'gt', column: 'pages', value: 10 },
      { column: 'author_id', value: 1 },
    ]
    assert.deepEqual(await titles({ conditions }), ['three'])
    assert.deepEqual(await titles({ where: { pages: { gt: 10 }, author_id: 1 } }), ['three'])
  })

  example(
    'rows are sorted and paged, and the response says if the default limit has cut them',
    async () => {
      await insert(
        'books',
        Array.from({ length: 4 }, (_, index) => ({ title: `more ${index}`, pages: index + 100 })),
      )
      const cut = await fetch({
        table: 'books',
        columns: 'pages',
        sort_by: { field: 'pages', direction: 'desc' },
      })
      assert.deepEqual([cut.rows.length, cut.rows[0].pages, cut.hasMore], [5, 103, true])
      const page = await fetch({
        table: 'books',
        columns: 'id',
        sort_by: 'id',
        current_page: 2,
        page_size: 3,
        count: 'exact',
      })
      assert.deepEqual(page.rows, [{ id: 4 }, { id: 5 }, { id: 6 }])
      assert.deepEqual([page.count, page.hasMore], [7, false])
      const last = await fetch({ table: 'books', offset: 6, limit: 3, count: 'exact' })
      assert.deepEqual([last.rows.length, last.count], [1, 7])
      const beyond = await fetch({ table: 'books', offset: 60, count: 'exact' })
      assert.deepEqual([beyond.rows.length, beyond.count], [0, 7])
      const head = await fetch({ table: 'books', head: true, count: 'exact' })
      assert.deepEqual([head.text, head.count], ['[]', 7])
    },
    'paging',
  )

  example('columns have their aliases and the requested order, and nulls can be omitted', async () => {
    const { text } = await fetch({
      table: 'books',
      columns: ['pages', 'name:title', 'id as number'],
      limit: 1,
      sort_by: 'id',
    })
    assert.equal(text, '[{"pages":10,"name":"one","number":1}]')
    const bare = await fetch({ table: 'books', columns: 'id,active', strip_nulls: true, sort_by: 'id' })
    assert.equal(bare.text, '[{"id":1,"active":true},{"id":2,"active":false},{"id":3}]')
  })

  example(
    'relations are returned as objects and arrays, in both directions',
    async () => {
      const one = await fetch({
        table: 'books',
        columns: 'title,author:author_id(name)',
        sort_by: 'id',
        limit: 1,
      })
      assert.deepEqual(one.rows, [{ title: 'one', author: { name: 'Ada' } }])
      const many = await fetch({
        table: 'authors',
        columns: 'name,books(title,authors(name))',
        sort_by: 'id',
        limit: 1,
      })
      const author = { name: 'Ada' }
      assert.deepEqual(many.rows, [
        {
          name: 'Ada',
          books: [
            { title: 'one', authors: author },
            { title: 'three', authors: author },
          ],
        },
      ])
      await assert.rejects(fetch({ table: 'books', columns: 'publishers(name)' }), {
        code: 'unknown_relation',
        status: 400,
      })
    },
    'relations',
  )

  example('rows with different members can be inserted, and missing columns get their default', async () => {
    const { rows, affected } = await insert(
      'books',
      [{ title: 'a' }, { pages: 5, title: 'b' }, { title: 'c', lang: null }],
      {
        columns: 'title,pages,lang',
      },
    )
    assert.equal(affected, 3)
    const lang = lacks('defaults') ? null : 'en'
    assert.deepEqual(rows, [
      { title: 'a', pages: null, lang },
      { title: 'b', pages: 5, lang },
      { title: 'c', pages: null, lang: null },
    ])
    const nulls = await insert('books', [{ title: 'd' }, { title: 'e', lang: 'fr' }], {
      columns: 'lang',
      default_to_null: true,
    })
    assert.deepEqual(nulls.rows, [{ lang: null }, { lang: 'fr' }])
  })

  example('an insert is atomic', async () => {
    const rows = [...Array.from({ length: 500 }, (_, index) => ({ title: `t${index}` })), one]
    await assert.rejects(insert('books', rows), { code: 'unique_violation', status: 409 })
    assert.equal(await count({ table: 'books' }), 3)
  })

  example('an insert of many rows is one call and returns all of them', async () => {
    const many = subject.many ?? 20_000
    const rows = Array.from({ length: many }, (_, index) => ({
      title: `t${index}`,
      pages: index + 1,
      tags: [`x${index}`],
    }))
    const answer = await insert('books', rows, { columns: 'title,pages,tags' })
    assert.equal(answer.affected, many)
    assert.deepEqual(answer.rows, rows)
  })

  example(
    'a conflict can be ignored',
    async () => {
      const nothing = await insert('books', [one, { title: 'new' }], {
        on_conflict: unique,
        columns: 'title',
      })
      assert.deepEqual([nothing.affected, nothing.rows], [1, [{ title: 'new' }]])
      await assert.rejects(insert('books', one, { on_conflict: 'pages' }), {
        code: 'invalid_conflict_target',
      })
    },
    'conflict',
  )

  example(
    'a conflict can update the existing row',
    async () => {
      const changed = await insert('books', one, {
        on_conflict: unique,
        update_body: { pages: 11 },
        columns: 'id,pages',
      })
      assert.deepEqual(changed.rows, [{ id: 1, pages: 11 }])
    },
    'update_body',
  )

  example('updates and deletes affect the rows that match their conditions', async () => {
    const write = { table: 'books', set: { pages: 1 }, columns: 'title' }
    const byAuthor = { ...write, conditions: [{ column: 'author_id', value: 1 }] }
    const byIds = { ...write, conditions: [{ operator: 'in', column: 'id', value: [1, 3] }] }
    if (lacks('free writes')) await assert.rejects(update(byAuthor), refused)
    const changed = await update(lacks('free writes') ? byIds : byAuthor)
    assert.equal(changed.affected, 2)
    const third = unique.length > 1 ? { conditions: [{ column: 'id', value: 3 }] } : { resource_id: '3' }
    const byKey = await remove({ table: 'books', ...third })
    assert.deepEqual([byKey.affected, byKey.rows[0].title], [1, 'three'])
    const silent = await remove({ table: 'books', head: true, conditions: [{ column: 'id', value: 1 }] })
    assert.deepEqual([silent.affected, silent.rows], [1, []])
    assert.equal(await count({ table: 'books' }), 1)
  })

  example(
    'updates and deletes respect limit and order',
    async () => {
      const last = { sort_by: { field: 'id', direction: 'desc' }, columns: ['id'], allow_unbounded: true }
      const some = await update({ table: 'books', set: { pages: 2 }, limit: 2, count: 'exact', ...last })
      assert.deepEqual([some.rows, some.affected, some.total], [[{ id: 3 }, { id: 2 }], 2, 3])
      const skipped = await remove({ table: 'books', limit: 1, offset: 1, ...last })
      assert.deepEqual(skipped.rows, [{ id: 2 }])
      assert.equal(await count({ table: 'books' }), 2)
    },
    'limited writes',
  )

  example(
    'a write of a single row that several match writes none',
    async () => {
      const byAda = { table: 'books', conditions: [{ column: 'author_id', value: 1 }], single: true }
      const notOne = { code: 'not_one_row', status: 409 }
      const first = { ...byAda, conditions: [{ column: 'pages', value: 10 }] }
      assert.equal((await update({ ...first, set: { pages: 7 }, head: true })).affected, 1)
      assert.equal((await remove({ ...first, head: true })).affected, 0)
      await assert.rejects(update({ ...byAda, set: { pages: 8 } }), notOne)
      await assert.rejects(remove(byAda), notOne)
      assert.deepEqual(await titles({ conditions: [{ column: 'pages', value: 7 }] }), ['one'])
      assert.deepEqual(await titles({}), ['one', 'two', 'three'])
    },
    'limited writes',
  )

  example('counts are exact', async () => {
    assert.equal(await count({ table: 'books' }), 3)
    assert.equal(await count({ table: 'books', conditions: [{ column: 'author_id', value: 1 }] }), 2)
  })

  example(
    'counts can be planner estimates',
    async () => {
      assert.ok((await count({ table: 'books', count: 'planned' })) >= 0)
      assert.equal(await count({ table: 'books', count: 'estimated' }), 3)
    },
    'planned count',
  )

  /** Asserts the failure, and the column in its details if given. */
  const rejected = (call: () => Promise<unknown>, expected: object, column?: string) =>
    assert.rejects(call(), (error: Error & { details?: { column?: string } }) => {
      assert.deepEqual(
        { code: 'code' in error && error.code, status: 'status' in error && error.status },
        expected,
        error.message,
      )
      if (column !== undefined) assert.equal(error.details?.column, column, error.message)
      return true
    })

  example('invalid values are rejected with code and column', async () => {
    const wrong: Wrong[] = [
      [() => fetch({ table: 'nowhere' }), { code: 'table_not_found', status: 404 }],
      [() => fetch({ table: 'books', columns: 'titel' }), { code: 'unknown_column', status: 400 }, 'titel'],
      [
        () =>
          fetch({
            table: 'books',
            conditions: [
              { column: 'title', value: 'x' },
              { column: 'pages', value: 'many' },
            ],
          }),
        { code: 'invalid_value', status: 422 },
        'pages',
      ],
      [
        () =>
          fetch({
            table: 'books',
            conditions: [
              { column: 'title', value: 'x' },
              { column: 'pages', operator: 'in', value: [1, 'many'] },
            ],
          }),
        { code: 'invalid_value', status: 422 },
        'pages',
        'in',
      ],
      [
        () => fetch({ table: 'books', conditions: [{ column: 'pages', operator: 'like', value: 'x' }] }),
        { code: 'invalid_operator', status: 400 },
        'pages',
        'like',
      ],
      [
        () => fetch({ table: 'books', conditions: [{ column: 'pages', value: 1, value_cast: 'regclass' }] }),
        { code: 'invalid_cast', status: 400 },
      ],
      [() => insert('books', { title: 'x', pages: 'many' }), { code: 'invalid_value', status: 422 }, 'pages'],
      [
        () =>
          insert('books', [
            { title: 'x', pages: 1 },
            { title: 'y', pages: 1e12 },
          ]),
        { code: 'invalid_value', status: 422 },
        'pages',
      ],
      [
        () => insert('books', one),
        { code: 'unique_violation', status: 409 },
        subject.key ? undefined : 'title',
      ],
      [
        () => update({ table: 'books', set: { pages: 'many' }, conditions: [{ column: 'id', value: 1 }] }),
        { code: 'invalid_value', status: 422 },
        'pages',
      ],
      [() => insert('books', { title: 'x', nope: 1 }), { code: 'unknown_column', status: 400 }, 'nope'],
    ]
    for (const [call, expected, column, needed] of wrong)
      await rejected(call, lacks(needed) ? refused : expected, lacks(needed) ? undefined : column)
  })

  if (!lacks('constraints'))
    example('constraint violations are rejected with code and column', async () => {
      const wrong: Wrong[] = [
        [() => insert('books', { title: 'x'.repeat(200) }), { code: 'invalid_value', status: 422 }, 'title'],
        [
          () =>
            insert('books', [
              { title: 'x', price: 1e9 },
              { title: 'y', price: 1 },
            ]),
          { code: 'invalid_value', status: 422 },
          'price',
        ],
        [
          () => insert('books', { title: 'x', pages: -1 }),
          { code: 'check_violation', status: 422 },
          lacks('column of a check') ? undefined : 'pages',
        ],
        [() => insert('books', { title: null }), { code: 'not_null_violation', status: 400 }, 'title'],
        [
          () => insert('books', { title: 'x', author_id: 99 }),
          { code: 'foreign_key_violation', status: 409 },
          'author_id',
        ],
        [
          () => remove({ table: 'authors', conditions: [{ column: 'id', value: 1 }] }),
          { code: 'foreign_key_violation', status: 409 },
        ],
      ]
      for (const [call, expected, column] of wrong) await rejected(call, expected, column)
    })

  example('numbers keep all digits in reads and writes', async () => {
    const rows = parseJson(
      '[{"title":"big","exact":123456789012345678901234567890.123456789,"meta":{"n":12345678901234567890}}]',
    )
    const { json } = await insert('books', rows as Json[], { columns: 'exact,meta' })
    const text = Buffer.concat(json).toString()
    assert.match(text, /"exact":123456789012345678901234567890\.123456789\b/)
    assert.match(text, /12345678901234567890\b/)
    const conditions = [{ column: 'exact', value: parseJson('123456789012345678901234567890.123456789 ') }]
    assert.equal(await count({ table: 'books', conditions }), 1)
  })

  example('numbers keep their scale, and integers may be written with a zero fraction', async () => {
    const rows = parseJson('[{"title":"scaled","exact":1.10,"pages":30.0,"meta":{"n":2.50}}]')
    const { json } = await insert('books', rows as Json[], { columns: 'exact,pages,meta' })
    const text = Buffer.concat(json).toString()
    assert.match(text, /"exact":1\.10,"pages":30,/)
    assert.match(text, /2\.50\b/)
    const conditions = [{ column: 'exact', value: parseJson('1.10 ') }]
    assert.equal(await count({ table: 'books', conditions }), 1)
  })

  example(
    'a transaction is atomic',
    async () => {
      const driver = subject.driver()
      const planned = (title: string) =>
        driver.plan(readInsert({ table: 'books', insert_body: { title } }, { limits }), EVERY_RIGHT)
      const [plan, other] = [await planned('held'), await planned('failed')]
      const failing = async (on: OpenTransaction) => {
        await driver.insert(other, on)
        throw new Error('a bug')
      }
      const inTransaction = requireAbility(driver, 'transaction')
      const { affected } = await inTransaction((on) => driver.insert(plan, on), {})
      assert.deepEqual([affected, await count({ table: 'books' })], [1, 4])
      await assert.rejects(inTransaction(failing, {}), /a bug/)
      assert.equal(await count({ table: 'books' }), 4)
      const reading = inTransaction((on) => driver.insert(other, on), { readOnly: true })
      await assert.rejects(reading, { code: 'read_only', status: 403 })
    },
    'transaction',
  )

  example(
    'a response is stored once under an idempotency key, until it expires',
    async () => {
      const driver = subject.driver()
      const idempotency = requireAbility(driver, 'idempotency')
      const at = new Date()
      const since = new Date(at.getTime() - 60_000)
      const claim = (body: string) =>
        requireAbility(driver, 'transaction')(async (on) => {
          const isMine = await idempotency.claim(on, 'key', { body, at, since })
          if (isMine) await idempotency.store(on, 'key', '{"a":1}')
          return isMine
        }, {})
      assert.equal(await idempotency.find('key', since), undefined)
      assert.deepEqual(await Promise.all([claim('one'), claim('one')]).then((mine) => mine.sort()), [
        false,
        true,
      ])
      assert.deepEqual(await idempotency.find('key', since), { body: 'one', answer: '{"a":1}' })
      assert.equal(await idempotency.find('key', new Date(at.getTime() + 1)), undefined)
    },
    'idempotency',
  )

  example(
    "a caller's own SQL runs and returns its rows",
    async () => {
      const request = {
        text: 'select title from books',
        values: undefined,
        readOnly: true,
        schema: undefined,
      }
      const answer = await requireAbility(
        subject.driver(),
        'sql',
      )({ ...request, database: undefined, maxRows: 5, presence: ALWAYS_PRESENT })
      assert.deepEqual(
        JSON.parse(Buffer.concat(answer.json).toString())
          .map(({ title }: { title: string }) => title)
          .sort(),
        ['one', 'three', 'two'],
      )
    },
    'sql',
  )

  example('an unknown function is reported', async () => {
    const read = readFetch({ table: 'nothing_to_call' }, { limits })
    const call = { read, arguments: {}, areTexts: false, readOnly: true, presence: ALWAYS_PRESENT }
    const expected = lacks('call') ? refused : { code: 'function_not_found', status: 404 }
    await assert.rejects(async () => requireAbility(subject.driver(), 'call')(call), expected)
  })

  example(
    'schema changes are visible to the planner at once',
    async () => {
      const management = requireAbility(subject.driver(), 'management')
      await management.run(['alter table books add more text'])
      assert.deepEqual((await fetch({ table: 'books', columns: 'more', limit: 1 })).rows, [{ more: null }])
      await management.run(['alter table books drop more'])
      await assert.rejects(fetch({ table: 'books', columns: 'more' }), { code: 'unknown_column' })
    },
    'run',
  )

  example(
    'the indexes of a table are listed',
    async () => {
      assert.ok((await requireAbility(subject.driver(), 'indexes')()).some(({ table }) => table === 'books'))
    },
    'indexes',
  )
}

/** The feature that a condition needs. Comparing with null counts as `is`; a JSON value needs JSON support. */
const featureOf = ({ column, column_cast, value_cast, value, operator = 'eq' }: Body) => {
  if (column_cast !== undefined || value_cast !== undefined) return 'cast'
  if (column === 'meta') return 'json'
  return operator === 'eq' && value === null ? 'is' : operator
}
