import assert from 'node:assert/strict'
import { test } from 'node:test'
import { instantFrom } from './instants.ts'

test('an existing day and time is an instant, in UTC without a zone', () => {
  const same: Readonly<Record<string, string>> = {
    '2024-02-29': '2024-02-29T00:00:00.000Z',
    '2024-05-06 07:08:09.123456+00': '2024-05-06T07:08:09.123Z',
    '2024-05-06T07:08+0230': '2024-05-06T04:38:00.000Z',
    ' 2024-12-31t23:59:59z ': '2024-12-31T23:59:59.000Z',
  }
  for (const [text, instant] of Object.entries(same))
    assert.equal(instantFrom(text)?.toISOString(), instant, text)
})

test('days and times that do not exist are refused, and other texts that only JavaScript accepts as dates', () => {
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
