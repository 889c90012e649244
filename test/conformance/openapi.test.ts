import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AUTH_CODES } from '#auth/errors.ts'
import { GATEWAY_CODES } from '#gateway/errors.ts'
import { EVENTS } from '#kernel/events.ts'
import { EVERY_FEATURE } from '#test/every-feature.ts'
import { type Actor, PASSWORD, testService } from '#test/harness.ts'
import {
  contentOf,
  type DocumentedOperation,
  documentedAnswers,
  documentedPayloads,
  type OpenapiDocument,
  operationsOf,
  type Schema,
  shownBodies,
} from '#test/openapi.ts'

const t = await testService({ config: { auth: EVERY_FEATURE } })
const document: OpenapiDocument = (await t.anon.get('/openapi.json')).body
const operations = operationsOf(document)

test('every operation has a unique id, a summary, one tag and described responses', () => {
  const names = operations.map(({ operation }) => operation.operationId)
  assert.deepEqual(
    names.filter((name, index) => names.indexOf(name) !== index),
    [],
  )
  const features = new Set(document.tags.map(({ name }) => name))
  for (const { method, path, operation } of operations) {
    const what = `${method} ${path}`
    assert.match(operation.operationId, /^[a-z][A-Za-z0-9]+$/, what)
    assert.ok(operation.summary, what)
    assert.equal(operation.tags.length, 1, what)
    assert.ok(features.has(operation.tags[0] ?? ''), `${what} has an unknown tag`)
    const alias = operation['x-alias-of']
    if (alias !== undefined) assert.ok(names.includes(alias), `${what} is an alias of an unknown operation`)
    const statuses = Object.keys(operation.responses)
    assert.ok(
      statuses.some((status) => /^[23]/.test(status)),
      `${what} has no response for success`,
    )
    for (const status of expected(method, operation))
      assert.ok(statuses.includes(status), `${what}: ${status}`)
    for (const [status, { description }] of Object.entries(operation.responses))
      assert.ok(description && description !== 'Default Response', `${what}: ${status} has no description`)
  }
  for (const { name, description } of document.tags) assert.ok(description, `tag ${name} has no description`)
})

test('every event is a webhook of the document, with a signature and a valid example', () => {
  assert.deepEqual(Object.keys(document.webhooks), Object.keys(EVENTS))
  const isDocumented = documentedPayloads(document)
  const names = new Set(operations.map(({ operation }) => operation.operationId))
  for (const [event, { post }] of Object.entries(document.webhooks)) {
    assert.ok(!names.has(post.operationId), post.operationId)
    names.add(post.operationId)
    assert.ok(document.tags.some(({ name }) => name === post.tags[0]))
    const headers = (post.parameters ?? []).map(({ name, required }) => [name, required])
    assert.deepEqual(
      headers,
      ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, true]),
    )
    const [example] = shownBodies(document, post) as { readonly type: string }[] // of a payload
    assert.equal(example?.type, event)
    isDocumented(example)
    assert.throws(() => isDocumented({ type: event }))
  }
})

test('headers of a project are documented only where the client may be custom_supabase', () => {
  for (const { method, path, operation } of operations) {
    const names = (operation.parameters ?? []).map(({ name }) => name)
    const takesProject = names.includes('x-supabase-url')
    if (path.startsWith('/admin/')) assert.ok(!takesProject, `${method} ${path}`)
    if (path === '/gateway/fetch') assert.ok(takesProject)
  }
})

/** Statuses that follow from an operation's method and security. */
const expected = (method: string, { security }: DocumentedOperation): readonly string[] => [
  '400',
  '5XX',
  ...(method === 'GET' ? [] : ['413', '415']),
  ...(security.length > 0 && security.every((way) => Object.keys(way).length > 0) ? ['401'] : []),
]

test('common schemas are defined once and referenced', () => {
  const { schemas } = document.components
  for (const name of [
    'AuthError', 'GatewayError', 'User', 'Session', 'Condition', 'SortBy', 'Row', 'ApiKeyRecord', 'ClientRecord',
  ]) // biome-ignore format: a list of names
    assert.ok(schemas[name], name)
  const text = JSON.stringify(document)
  for (const [, name = ''] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
    assert.ok(schemas[name], name)
  assert.doesNotMatch(text, /"x-(component|parsed)/)
})

test('every object schema has a name, and no member has a default, so that generated clients have classes', () => {
  for (const { method, path, operation } of operations) {
    const { requestBody, responses } = operation
    const contents = [
      requestBody?.content,
      ...Object.values(responses).map((response) => contentOf(document, response)),
    ]
    for (const { schema } of contents.flatMap((content = {}) => Object.values(content)))
      if (schema.type === 'object' || schema.allOf !== undefined)
        assert.fail(`${method} ${path} has an inline schema: ${JSON.stringify(schema).slice(0, 300)}`)
  }
  for (const [name, { properties = {} }] of Object.entries(document.components.schemas))
    for (const [member, schema] of Object.entries(properties as Record<string, Schema>))
      assert.equal(schema.default, undefined, `${name}.${member}`)
})

test('objects in lists, in unions and beside null are components, so that no generator numbers their classes', () => {
  const isInline = ({ type, properties, additionalProperties }: Schema): boolean =>
    [type].flat().includes('object') && (properties ?? additionalProperties) !== undefined
  const found: string[] = []
  const look = (node: unknown, place: string): void => {
    if (typeof node !== 'object' || node === null) return
    const { items, anyOf = [], allOf = [], properties = {}, ...schema } = node as Schema
    const parts = [items, ...(anyOf as Schema[]), ...(allOf as Schema[])]
    if (parts.some((part) => part !== undefined && isInline(part as Schema))) found.push(place)
    if (isInline(schema) && Array.isArray(schema.type)) found.push(`${place} beside null`)
    // The data of an envelope is named after it.
    for (const [name, member] of Object.entries(properties as Record<string, Schema>))
      if (name !== 'data' && member.properties !== undefined) found.push(`${place}.${name}`)
    for (const [name, member] of Object.entries(node))
      if (name !== 'examples') look(member, `${place}/${name}`)
  }
  look(document.components.schemas, '')
  for (const { method, path, operation } of operations) {
    const { requestBody, responses } = operation
    look([requestBody, responses], `${method} ${path}`)
  }
  assert.deepEqual(found, [])
})

test('the words of an enum differ in more than case and separators, which generators of names drop', () => {
  const look = (node: unknown, place: string): void => {
    if (typeof node !== 'object' || node === null) return
    const { enum: words = [] } = node as { readonly enum?: readonly unknown[] }
    const names = words.map((word) =>
      String(word)
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, '_'),
    )
    assert.equal(new Set(names).size, names.length, `${place}: ${words.join(', ')}`)
    for (const [name, member] of Object.entries(node)) look(member, `${place}/${name}`)
  }
  look(document, '')
})

test('every failure is a shared response of its surface, and its code is one of a table', () => {
  const { schemas, responses } = document.components
  const codes = { Auth: AUTH_CODES, Gateway: GATEWAY_CODES }
  for (const [surface, table] of Object.entries(codes)) {
    const shown = Object.entries(table).map(([code, [, , publicCode = code]]) => publicCode)
    assert.deepEqual(schemas[`${surface}ErrorCode`]?.enum, [...new Set(shown)].sort())
    const { properties } = schemas[`${surface}Error`] as { readonly properties: Record<string, Schema> }
    assert.deepEqual(properties.code, { $ref: `#/components/schemas/${surface}ErrorCode` })
  }
  for (const { method, path, operation } of operations) {
    const surface = path.startsWith('/api/auth/') ? 'Auth' : 'Gateway'
    for (const [status, { $ref = '', description }] of Object.entries(operation.responses)) {
      // The readiness probe answers 503 in a form of its own.
      if (/^[123]/.test(status) || (path === '/health/ready' && status === '503')) continue
      assert.match($ref, new RegExp(`^#/components/responses/${surface}Error`), `${method} ${path} ${status}`)
      assert.match(description, /^`\w+`(, `\w+`)*$/)
    }
    const large = operation.responses[431]?.description
    assert.equal(large, surface === 'Auth' ? '`HEADERS_TOO_LARGE`' : '`headers_too_large`')
  }
  assert.equal(Object.keys(responses).length, 4)
})

test('a body is required where the service refuses an absent one', async (context) => {
  const { apiKey } = await t.key(['*'])
  for (const { method, path, operation } of operations) {
    const { requestBody } = operation
    if (requestBody === undefined) continue
    await context.test(`${method} ${path}`, async () => {
      // An absent body may end a session or remove the account.
      const { token } = await t.signUp(operation.operationId)
      const { status, text, body } = await t.anon.send(method, addressOf(path, operation), {
        headers: { ...headersOf(operation), ...credentialOf(operation, { apiKey, token }) },
      })
      if (requestBody.required) assert.ok(status >= 400 || status === 303, text)
      else
        assert.doesNotMatch(
          String(body?.code),
          /^(validation_error|missing_.*|invalid_.*|unsupported_media_type)$/i,
          text,
        )
    })
  }
})

test('each example request of the document gets a documented response', async (context) => {
  const { apiKey } = await t.key(['*'])
  const ada = await t.anon.post('/api/auth/sign-up/email', {
    name: 'Ada Lovelace',
    email: 'ada@example.com',
    password: PASSWORD,
    username: 'ada',
  })
  assert.equal(ada.status, 200, ada.text)
  const token: string = ada.body.token
  const isDocumented = documentedAnswers(document)
  for (const { method, path, operation } of inOrder(operations)) {
    const bodies = shownBodies(document, operation)
    for (const [index, body] of (bodies.length > 0 ? bodies : [undefined]).entries()) {
      await context.test(`${method} ${path} ${bodies.length > 1 ? index + 1 : ''}`, async () => {
        const answer = await t.anon.send(method, addressOf(path, operation), {
          ...(body !== undefined && { body }),
          headers: { ...headersOf(operation), ...credentialOf(operation, { apiKey, token }) },
        })
        const type = answer.headers.get('content-type')?.split(';')[0] ?? ''
        isDocumented({ method, path }, { status: answer.status, type, text: answer.text })
        if (MUST_SUCCEED.has(operation.operationId)) assert.ok(answer.status < 300, answer.text)
      })
    }
  }
})

/** Operations whose examples must succeed, on the table that one of them creates. */
const MUST_SUCCEED = new Set([
  'createTable', 'insertRows', 'fetchRows', 'fetchRowsByValue', 'countRows', 'updateRows', 'deleteRows', 'runTransaction',
  'gatewayData', 'gatewayInsert', 'gatewayDelete', 'runSql', 'runSqlOnDriver', 'listColumns', 'signInEmail', 'signInUsername',
]) // biome-ignore format: a list of names

/**
 * Creates the table first, then inserts rows, then runs the rest. Operations that delete or end sessions come later, and those that change
 * or drop the table last.
 */
function inOrder(all: typeof operations): typeof operations {
  const place = (name: string): number => {
    if (name === 'createTable') return 0
    if (name === 'insertRows') return 1
    if (/^(edit|drop)/.test(name)) return 4
    return /^(delete|gatewayDelete|revoke|signOut|remove|resetP|changeP)/.test(name) ? 3 : 2
  }
  return all.toSorted((a, b) => place(a.operation.operationId) - place(b.operation.operationId))
}

function addressOf(path: string, { parameters = [] }: DocumentedOperation): string {
  const shown = parameters.flatMap((parameter) =>
    parameter.example === undefined && parameter.in !== 'path'
      ? []
      : [{ ...parameter, value: encodeURIComponent(String(parameter.example ?? 'x')) }],
  )
  const query = shown.filter((one) => one.in === 'query').map(({ name, value }) => `${name}=${value}`)
  const filled = shown
    .filter((one) => one.in === 'path')
    .reduce((text, { name, value }) => text.replace(`{${name}}`, value), path)
  return `${filled}${query.length > 0 ? `?${query.join('&')}` : ''}`
}

const headersOf = ({ parameters = [] }: DocumentedOperation): Record<string, string> =>
  Object.fromEntries(
    parameters.flatMap(({ in: place, name, example }) =>
      place === 'header' && example !== undefined ? [[name, String(example)]] : [],
    ),
  )

function credentialOf(
  { security }: DocumentedOperation,
  { apiKey, token }: { apiKey: string; token: string },
): Actor['headers'] {
  const ways = new Set(security.flatMap((way) => Object.keys(way)))
  if (ways.has('adminKey')) return t.admin.headers
  if (ways.has('apiKey')) return { apikey: apiKey }
  return ways.has('sessionToken') ? { authorization: `Bearer ${token}` } : {}
}
