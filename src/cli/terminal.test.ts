import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { test } from 'node:test'
import { sentenceOf } from './terminal.ts'

test('a file that cannot be used is named by its whole path, with the reason', async () => {
  const absent = await stat('no-such-file').catch(sentenceOf)
  assert.equal(absent, `${process.cwd()}/no-such-file does not exist.`)
})
