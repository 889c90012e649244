import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ANY_CHARACTER } from '#test/property/any-character.ts'
import { usernameFrom } from './usernames.ts'

test('a username has letters, digits, "_" and ".", in lower case; the display form is as typed', () => {
  assert.deepEqual(usernameFrom('Ada_L.99'), { username: 'ada_l.99', displayUsername: 'Ada_L.99' })
  assert.deepEqual(usernameFrom('ada', 'ADA'), { username: 'ada', displayUsername: 'ADA' })
  assert.deepEqual(usernameFrom('__proto__'), { username: '__proto__', displayUsername: '__proto__' })
})

test('a display form that differs by more than case is refused', () => {
  for (const display of [
    'adä',
    'ada ',
    'ada\u200b',
    '\u202eada',
    'eve',
    'ADA1',
    'ＡＤＡ',
    'ad\u0430',
    'Ada\n',
    '',
  ])
    assert.equal(usernameFrom('ada', display), undefined, JSON.stringify(display))
  // Their lower case is ASCII.
  for (const name of ['\u212Aarl', 'karl']) assert.equal(usernameFrom(name, '\u212Aarl'), undefined)
})

test('look-alikes of other names and line breaks are refused', () => {
  const none = [
    '', 'ab', 'a'.repeat(31), 'ada lovelace', ' ada', 'ada ', 'ada\u200b', 'a\u200dda', 'ada\ufeff', 'ada\u0301\u0301\u0301x', 'a\nda', 'ada\0',
    'ada@b', 'ada-b', 'ada/b', '<ada>', "ada'", '\u202eada', 'ada\u00a0b', '🙈🙈🙈', '---', '%00%00', 'ＡＤＡ', '日本語', 'zoë', 'ad\u0430', '١٢٣', '\u212Aarl', 'İda', 'ﬁnn', '__proto__\u0000',
  ] // biome-ignore format: a table
  for (const text of none) assert.equal(usernameFrom(text), undefined, JSON.stringify(text))
})

test('the stored form of any input is its own stored form', () => {
  const letters = fc.string({
    unit: fc.constantFrom(...'abcdefghXYZ019._ßİſﬁ²'),
    minLength: 3,
    maxLength: 12,
  })
  fc.assert(
    fc.property(
      fc.oneof(letters, fc.string({ unit: 'grapheme' }), fc.string({ unit: ANY_CHARACTER })),
      (typed) => {
        const { username } = usernameFrom(typed) ?? {}
        if (username === undefined) return
        assert.equal(usernameFrom(username)?.username, username)
        assert.match(username, /^[a-z0-9_.]{3,30}$/)
      },
    ),
    { numRuns: 1_000 },
  )
})
