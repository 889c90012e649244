import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { usernameFrom } from './usernames.ts'

test('a username is letters, digits, "_" and "." in lower case; the display form is what was typed', () => {
  assert.deepEqual(usernameFrom('Ada_L.99'), { username: 'ada_l.99', displayUsername: 'Ada_L.99' })
  assert.deepEqual(usernameFrom('ada', 'ADA'), { username: 'ada', displayUsername: 'ADA' })
  assert.equal(usernameFrom('ＡＤＡ')?.username, 'ada')
  assert.equal(usernameFrom('日本語')?.username, '日本語')
})

test('length is counted in characters, not in code units', () => {
  assert.equal(usernameFrom('𝒜𝒟')?.username, undefined)
  assert.equal(usernameFrom('𠮷𠮷𠮷')?.username, '𠮷𠮷𠮷')
  assert.equal(usernameFrom('𠮷'.repeat(31)), undefined)
})

test('what could be mistaken for another name or break a line is none', () => {
  const none = [
    '', 'ab', 'a'.repeat(31), 'ada lovelace', ' ada', 'ada ', 'ada\u200b', 'a\u200dda', 'ada\ufeff', 'ada\u0301\u0301\u0301x', 'a\nda', 'ada\0',
    'ada@b', 'ada-b', 'ada/b', '<ada>', "ada'", '\u202eada', 'ada\u00a0b', '🙈🙈🙈', '---', '%00%00', '__proto__\u0000',
  ] // biome-ignore format: a table
  for (const text of none) assert.equal(usernameFrom(text), undefined, JSON.stringify(text))
})

test('whatever is typed, the stored form is its own stored form', () => {
  const letters = fc.string({
    unit: fc.constantFrom(...'abcXYZ019._ÅßẞİıſﬁΣσςﾊﾟ①²Ⅷ'),
    minLength: 3,
    maxLength: 12,
  })
  fc.assert(
    fc.property(
      fc.oneof(letters, fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' })),
      (typed) => {
        const { username } = usernameFrom(typed) ?? {}
        if (username === undefined) return
        assert.equal(usernameFrom(username)?.username, username)
        assert.match(username, /^[\p{L}\p{N}_.]{3,30}$/u)
      },
    ),
    { numRuns: 3_000 },
  )
})
