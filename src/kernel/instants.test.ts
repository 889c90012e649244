import assert from 'node:assert/strict'
import { test } from 'node:test'
import { instantFrom } from './instants.ts'

test('a day and a time that exist are an instant, in UTC where no zone is named', () => {
  const same: Readonly<Record<string, string>> = {
    '2024-02-29': '2024-02-29T00:00:00.000Z',
    '2024-05-06 07:08:09.123456+00': '2024-05-06T07:08:09.123Z',
    '2024-05-06T07:08+0230': '2024-05-06T04:38:00.000Z',
    ' 2024-12-31t23:59:59z ': '2024-12-31T23:59:59.000Z',
  }
  for (const [text, instant] of Object.entries(same))
    assert.equal(instantFrom(text)?.toISOString(), instant, text)
})

test('a day or a time that does not exist is none, and neither is anything that JavaScript alone takes for a date', () => {
  const wrong = [
    '2023-02-29',
    '2024-02-30T00:00:00Z',
    '2024-04-31',
    '2024-00-10',
    '2024-13-01',
    '0000-00-00',
    '2024-01-32',
  ]
  const times = ['2024-01-01T25:00', '2024-01-01T12:60', '2024-01-01T23:59:60Z', '2024-01-01T12:00+25:00']
  const others = [
    '',
    '1',
    '2024',
    'May 6, 2024',
    '05/06/2024',
    'yesterday',
    '2024-01-01T12:00 CET',
    '+002024-01-01',
  ]
  for (const text of [...wrong, ...times, ...others]) assert.equal(instantFrom(text), undefined, text)
})
