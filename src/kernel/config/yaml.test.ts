import assert from 'node:assert/strict'
import { test } from 'node:test'
import { treeOfYaml } from './yaml.ts'

function problems(text: string): string[] {
  const found: string[] = []
  treeOfYaml(text, {
    source: 'file',
    env: {},
    report: ({ line }, path, says) => void found.push(`${line} ${path}: ${says}`),
  })
  return found
}

test('a key that is an alias without an anchor is reported', () => {
  assert.deepEqual(problems('server:\n  *abc : 1\n'), [
    '2 server.*abc: there is no such anchor; quote a value that begins with *',
    '1 server: a key must be a plain name',
  ])
})

test('the text of a key that is not a name is not written as a warning', (t) => {
  const { mock } = t.mock.method(process, 'emitWarning', () => {})
  for (const text of ['token: {{ abc }}', '? [abc, d]\n: 1'])
    assert.match(problems(text).join(), /^1 \w*: a key must be a plain name$/)
  assert.equal(mock.callCount(), 0)
})

test('one anchor can be used for hundreds of values', () => {
  const limits = Array.from({ length: 500 }, (_, i) => `client${i}: *limits`).join('\n')
  assert.deepEqual(problems(`limits: &limits { rows: 1 }\n${limits}\n`), [])
})
