import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { test } from 'node:test'
import { timeLeft } from './progress.ts'
import { sentenceOf } from './terminal.ts'

test('a file that cannot be used is named by its whole path, with the reason', async () => {
  const absent = await stat('no-such-file').catch(sentenceOf)
  assert.equal(absent, `${process.cwd()}/no-such-file does not exist.`)
})

test('a progress bar shows the time that is left as people say it', () => {
  assert.deepEqual(['INF', 0, 59, 90, 3_599, 5_400].map(timeLeft), [
    '…',
    '0 s',
    '59 s',
    '2 min',
    '1 h 0 min',
    '1 h 30 min',
  ])
})
