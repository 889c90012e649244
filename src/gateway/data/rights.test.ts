import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pg from 'pg'
import { REFUSED, type Shape, shapes, VAULT_TABLES, vaultRows } from '#test/data-shapes.ts'
import { type Actor, type Answer, testService } from '#test/harness.ts'

const t = await testService()
const database = new pg.Client({ connectionString: t.clientUrl })
await database.connect()
after(() => database.end())
await database.query(VAULT_TABLES)

const SECRET = 'alpha'
const fill = (secret = SECRET) => database.query(vaultRows(secret))
await fill()

const PATHS = {
  fetch: ['POST', '/gateway/fetch'],
  data: ['GET', '/data'],
  count: ['POST', '/query/count'],
  insert: ['PUT', '/gateway/insert'],
  update: ['POST', '/gateway/update'],
  delete: ['DELETE', '/gateway/delete'],
} as const

function ask(who: Actor, { kind, body, headers }: Pick<Shape, 'kind' | 'body' | 'headers'>): Promise<Answer> {
  const [method, path] = PATHS[kind]
  if (kind !== 'data')
    return who.send(method, path, { body: { table_name: 'vault', ...body }, ...(headers && { headers }) })
  const { table_name: view, ...rest } = body
  return who.get(
    `${path}?${new URLSearchParams({ view: String(view), ...(rest as Record<string, string>) })}`,
  ) // all values are texts
}

/** The same request as the only operation of a transaction, or undefined if there is no such operation. */
function askInTransaction(
  who: Actor,
  { kind, body }: Pick<Shape, 'kind' | 'body'>,
): Promise<Answer> | undefined {
  if (kind === 'data' || kind === 'count') return undefined
  const payload = { table_name: 'vault', ...body }
  return who.post('/gateway/transaction', { operations: [{ id: 'a', kind, payload }] })
}

const RIGHTS = ['read', 'write', 'delete'] as const
const WRITES: ReadonlySet<Shape['kind']> = new Set(['insert', 'update', 'delete'])
const SUBSETS = Array.from({ length: 8 }, (_, bits) => RIGHTS.filter((_, index) => bits & (1 << index)))

test('every shape of request needs exactly the rights of its row', async () => {
  const table = shapes(SECRET)
  let cells = 0
  for (const granted of SUBSETS) {
    const who = await t.key(['person.read', ...granted.map((action) => `vault.${action}`)])
    for (const [name, shape] of Object.entries(table)) {
      const cell = `${name} with ${granted.join(', ') || 'nothing'}`
      const isGranted = shape.needs.every((right) => granted.includes(right))
      for (const answer of [await ask(who, shape), await askInTransaction(who, shape)]) {
        if (answer === undefined) continue
        cells++
        if (!isGranted) {
          assert.deepEqual(
            [answer.status, answer.body.code],
            [403, 'insufficient_rights'],
            `${cell}: ${answer.text}`,
          )
          continue
        }
        assert.notEqual(answer.status, 403, `${cell}: ${answer.text}`)
        if (answer.status === 200 && !granted.includes('read')) {
          const { data, count } = answer.body.data.results?.[0] ?? answer.body
          assert.deepEqual([data, count], [[], undefined], cell)
        }
        if (answer.status === 200 && WRITES.has(shape.kind)) await fill()
      }
    }
  }
  const alone = Object.values(table).filter(({ kind }) => kind === 'data' || kind === 'count').length
  assert.equal(cells, SUBSETS.length * (2 * Object.keys(table).length - alone), 'a cell is missing')
})

test('every member of every body schema is covered by the table', async () => {
  const all = Object.values(shapes(SECRET))
  const { schemas } = (await t.anon.get('/openapi.json')).body.components
  const bodies = {
    fetch: schemas.FetchBody,
    count: schemas.CountBody,
    insert: schemas.InsertBody,
    update: schemas.UpdateBody,
    delete: schemas.DeleteBody,
  }
  /** Names that appear only in the table. */
  const target = ['table', 'view_name', 'schema_name']
  for (const [kind, { properties }] of Object.entries(bodies)) {
    const used = new Set(all.filter((shape) => shape.kind === kind).flatMap(({ body }) => Object.keys(body)))
    assert.deepEqual(
      Object.keys(properties).filter((name) => !used.has(name) && !target.includes(name)),
      [],
      kind,
    )
  }
})

/** Everything that responses reveal, without the request id. */
const revealed = ({ status, text }: Answer) =>
  `${status} ${text.replace(/"request_id":"[^"]*"/, '"request_id":""')}`

/** Responses to a caller with these rights, without the right to read, from a database with this secret. */
async function answersFrom(secret: string, guess: string, who: Actor, kinds: readonly Shape['kind'][]) {
  const answers: Record<string, string> = {}
  const all = Object.entries({ ...shapes(guess), ...REFUSED }).filter(([, { kind }]) => kinds.includes(kind))
  await fill(secret)
  for (const [name, shape] of all)
    for (const [way, asking] of [
      ['at once', ask],
      ['in a transaction', askInTransaction],
    ] as const) {
      const answer = await asking(who, shape)
      if (answer === undefined) continue
      answers[`${name}, ${way}`] = revealed(answer)
      if (answer.status === 200) await fill(secret)
    }
  await fill()
  return answers
}

const BLIND = [
  [['vault.write'], ['insert', 'update']],
  [['vault.delete', 'person.read', 'entry.read'], ['delete']],
] as const

test('without the right to read, responses do not depend on a secret in the table', async () => {
  for (const [rights, kinds] of BLIND) {
    const who = await t.key(rights)
    const right = await answersFrom('alpha', 'alpha', who, kinds)
    assert.deepEqual(await answersFrom('omega', 'alpha', who, kinds), right, rights.join())
    assert.ok(
      Object.values(right).some((text) => text.startsWith('200')),
      'none of the writes succeeded',
    )
    for (const [name, text] of Object.entries(right)) {
      assert.doesNotMatch(text, /alpha|omega|kept|owned_by|vault_pkey|did_you_mean|hidden|_check/, name)
      if (rights.length === 1) assert.doesNotMatch(text, /person|email_address|entry/, name)
    }
  }
})

test('a key with the right to read gets detailed errors', async () => {
  const who = await t.key(['vault.read', 'vault.write', 'vault.delete', 'entry.read'])
  const answers = new Map<string, Answer>()
  for (const [name, shape] of Object.entries(REFUSED)) answers.set(name, await ask(who, shape))
  await fill()
  const details = (name: string) => answers.get(name)?.body.data.details
  assert.equal(details('an unknown column').did_you_mean, 'secret')
  assert.equal(details('a missing value').column, 'secret')
  assert.equal(details('an existing key').constraint, 'vault_pkey')
  assert.match(
    answers.get('a trigger whose error message contains the secret')?.text ?? '',
    /the secret is alpha/,
  )
  assert.match(answers.get('a referenced row')?.text ?? '', /entry_of_vault/)
})

test('the name of a foreign key is revealed only to keys that may read its table', async () => {
  const who = await t.key(['vault.read', 'vault.delete'])
  const relation = async (columns: string) => {
    const { status, body } = await ask(who, { kind: 'fetch', body: { columns } })
    return [status, body.code, body.data.details]
  }
  const refused = (right: string) => [
    403,
    'insufficient_rights',
    { required_right: right, required_rights: [right] },
  ]
  assert.deepEqual(await relation('entry(id)'), refused('entry.read'))
  assert.deepEqual(await relation('nothing(id)'), refused('nothing.read'))
  assert.deepEqual(await relation('entry_of_vault(id)'), refused('entry_of_vault.read'))
  assert.deepEqual(
    await relation('owner(email_adress)'),
    refused('person.read'),
    'the response contains its columns',
  )
  const referred = await ask(who, { kind: 'delete', body: { resource_id: 3 } })
  assert.deepEqual([referred.status, referred.body.code], [409, 'foreign_key_violation'])
  assert.doesNotMatch(referred.text, /entry/)

  const reader = await t.key(['vault.read', 'entry.read', 'person.read'])
  const unknown = await ask(reader, { kind: 'fetch', body: { columns: 'entrys(id)' } })
  assert.equal(unknown.status, 403, 'the name exists as a table')
  assert.equal(
    (await ask(await t.key(['gateway.read']), { kind: 'fetch', body: { columns: 'entrys(id)' } })).body.code,
    'unknown_relation',
  )
  assert.equal((await ask(reader, { kind: 'fetch', body: { columns: 'entry(id)' } })).status, 200)
})

test('errors of deferred constraints are reported like immediate ones', async () => {
  await database.query('alter table vault alter constraint owned_by deferrable initially deferred')
  const operations = [
    {
      id: 'a',
      kind: 'insert',
      payload: { table_name: 'vault', insert_body: { id: 9, secret: 's', owner: 99 } },
    },
  ]
  const writer = await t.key(['vault.write'])
  const silent = await writer.post('/gateway/transaction', { operations })
  assert.deepEqual([silent.status, silent.body.code], [409, 'foreign_key_violation'])
  assert.doesNotMatch(silent.text, /owned_by|person/)
  const reader = await t.key(['vault.write', 'vault.read'])
  assert.match((await reader.post('/gateway/transaction', { operations })).text, /owned_by/)
  await database.query('alter table vault alter constraint owned_by not deferrable')
})
