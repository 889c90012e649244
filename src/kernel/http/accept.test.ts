import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testService } from '#test/harness.ts'
import { preferredType } from './accept.ts'

const t = await testService()
const BOTH = ['application/json', 'text/csv']

test('of the media types that a route has, the caller gets the one that it weighs highest', () => {
  for (const [accept, expected] of [
    ['*/*', 'application/json'],
    ['text/csv', 'text/csv'],
    ['TEXT/CSV; charset=utf-8', 'text/csv'],
    ['text/*', 'text/csv'],
    ['application/json, text/csv', 'application/json'],
    ['text/csv, application/json', 'text/csv'],
    ['text/csv;q=0.5, application/json;q=0.9', 'application/json'],
    ['application/json;q=0, */*', 'text/csv'],
    ['text/csv, */*;q=0.1', 'text/csv'],
    // A browser.
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'application/json'],
    ['', 'application/json'],
    ['nonsense', 'application/json'],
    ['image/png', undefined],
    ['application/json;q=0', undefined],
    ['text/csv;q=0, application/json;q=x', undefined],
    ['application/vnd.pgrst.object+json', undefined],
  ] as const)
    assert.equal(preferredType(accept, BOTH), expected, accept)
})

test('a media type that a route does not have is 406 on both surfaces, and names what there is', async () => {
  const reader = await t.key(['*'])
  const accept = { accept: 'application/xml' }
  const refused = await reader.post('/gateway/fetch', { table_name: 'nowhere' }, { headers: accept })
  assert.deepEqual([refused.status, refused.body.code], [406, 'not_acceptable'], refused.text)
  assert.equal(refused.headers.get('content-type'), 'application/json; charset=utf-8')
  assert.deepEqual(Object.keys(refused.body), ['status', 'message', 'error', 'code', 'request_id', 'data'])
  assert.ok(refused.body.data.details.available.includes('application/json'))

  const session = await t.anon.get('/api/auth/get-session', { headers: accept })
  assert.deepEqual(
    [session.status, session.body.code],
    [401, 'UNAUTHORIZED'],
    'a stranger learns nothing else',
  )
  const sent = { email: 'nobody@example.com', name: 'Nobody', password: 'correct horse battery' }
  const signUp = await t.anon.post('/api/auth/sign-up/email', sent, { headers: accept })
  assert.deepEqual([signUp.status, signUp.body.code], [406, 'NOT_ACCEPTABLE'], signUp.text)
  assert.deepEqual(await t.mails(), [], 'nothing happened')
})

test('without Accept, with a wildcard and from a browser the answer is JSON', async () => {
  const reader = await t.key(['*'])
  const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8'
  for (const accept of [undefined, '*/*', 'application/*', browser, 'nonsense']) {
    const headers = accept === undefined ? {} : { accept }
    const answer = await reader.post('/gateway/query', { query: 'select 1 as one' }, { headers })
    assert.equal(answer.status, 200, answer.text)
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  }
})

test('links, pages and texts are for every caller', async () => {
  const headers = { accept: 'image/png' }
  assert.equal((await t.anon.get('/ping', { headers })).text, 'pong')
  const link = await t.anon.get('/api/auth/verify-email?token=none', { headers })
  assert.notEqual(link.status, 406)
})
