import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ANY_CHARACTER } from '#test/property/any-character.ts'
import { imageFrom } from './images.ts'
import { nameFrom } from './names.ts'

test('names are trimmed and NFC', () => {
  const names: Readonly<Record<string, string>> = {
    Ada: 'Ada',
    '  Ada Lovelace\n': 'Ada Lovelace',
    'Zoe\u0308': 'Zoë',
    "Conan O'Brien, Jr. (he/him) <3": "Conan O'Brien, Jr. (he/him) <3",
    '山田　太郎': '山田　太郎',
    'عبد الله': 'عبد الله',
    'علی\u200cرضا': 'علی\u200cرضا',
    'क्\u200dष': 'क्\u200dष',
    'Ada 👩\u200d💻 ❤\ufe0f': 'Ada 👩\u200d💻 ❤\ufe0f',
    '👨\u200d👩\u200d👧\u200d👦': '👨\u200d👩\u200d👧\u200d👦',
    '🏳\ufe0f\u200d🌈': '🏳\ufe0f\u200d🌈',
    '': '',
  }
  for (const [typed, stored] of Object.entries(names))
    assert.equal(nameFrom(typed), stored, JSON.stringify(typed))
})

test('a name has at most 100 characters, counted as code points', () => {
  assert.equal(nameFrom('𠮷'.repeat(100)), '𠮷'.repeat(100))
  assert.equal(nameFrom('𠮷'.repeat(101)), undefined)
  assert.equal(nameFrom(`${' '.repeat(50)}${'a'.repeat(100)}\n`), 'a'.repeat(100))
  assert.equal(nameFrom('a'.repeat(101)), undefined)
})

test('line breaks, terminal sequences, bidirectional and invisible characters are refused', () => {
  const none = [
    'Ada\nEve', 'Ada\rEve', 'Ada\r\nEve', 'Ada\tEve', 'Ada\vEve', 'Ada\u0085Eve', 'Ada\u2028Eve', 'Ada\u2029Eve', 'Ada\0Eve', 'Ada\x7fEve',
    '\u001b[31mAda', 'Ada\u001b]8;;https://evil.example\u0007', 'Ada\u009b31m',
    '\u202eadA', 'Ada\u202d', 'a\u202ab', 'a\u202bb', 'a\u202cb', '\u2066Ada\u2069', 'a\u2067b', 'a\u2068b', 'a\u200eb', 'a\u200fb', 'a\u061cb',
    'Ada\u200b', 'A\u200bda', 'A\u00adda', 'A\u2060da', 'A\u180eda', 'A\ufeffda', '\u200dAda', 'Ada\u200d', 'Ada \u200c Eve', '\u200c', 'Ada\ufe0f',
    '\u3164', '\u115f', '\uffa0', '\u2800', 'A\u{e0061}da', 'A\u{e0100}da', 'A\ue000da', '\ud800', 'a\ufff9b', 'x\u206ay',
  ] // biome-ignore format: a table
  for (const text of none) assert.equal(nameFrom(text), undefined, JSON.stringify(text))
})

const NEVER = /[\n\r\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\p{Cc}\p{Zl}\p{Zp}]/u

test('the stored form of any input is its own stored form, and one visible line', () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.string({ unit: ANY_CHARACTER }),
    fc.string({ unit: fc.constantFrom(...'aé ١👩💻❤1#\u200c\u200d\ufe0f\u202e\u0301\n\u3000') }),
  )
  fc.assert(
    fc.property(text, (typed) => {
      const name = nameFrom(typed)
      if (name === undefined) return
      assert.equal(nameFrom(name), name)
      assert.ok([...name].length <= 100)
      assert.doesNotMatch(name, NEVER)
    }),
    { numRuns: 1_000 },
  )
})

test('a text of a million characters is refused quickly', () => {
  for (const unit of ['\u0301', 'ﷺ', '\u200d', 'a\u200d', '👩\u200d', ' a'])
    assert.equal(nameFrom(unit.repeat(1_000_000)), undefined, unit)
})

test('a picture is an http or https URL, as the URL parser writes it', () => {
  assert.equal(imageFrom('https://example.com/a b.png'), 'https://example.com/a%20b.png')
  assert.equal(imageFrom('HTTP://EXAMPLE.com/../a.png?x=1#y'), 'http://example.com/a.png?x=1#y')
  assert.equal(imageFrom('https://例子.公司/é'), 'https://xn--fsqu00a.xn--55qx5d/%C3%A9')
  const none = [
    '', ' ', 'a.png', '/a.png', '//example.com/a.png', 'https:example.com', 'https:/example.com', 'javascript:alert(1)', 'java\nscript:alert(1)',
    'data:image/png;base64,AAAA', 'blob:https://example.com/1', 'ftp://example.com/a', 'file:///etc/passwd', 'https://', 'https://user@example.com/a',
    'https://user:pass@example.com/', 'https://exa mple.com', ' https://example.com', `https://example.com/${'a'.repeat(2_048)}`,
    `https://example.com/${'é'.repeat(400)}`,
  ] // biome-ignore format: a table
  for (const text of none) assert.equal(imageFrom(text), undefined, JSON.stringify(text))
})
