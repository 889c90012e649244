import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ANY_CHARACTER } from '#test/property/any-character.ts'
import { emailFrom } from './emails.ts'

test('an address has one form', () => {
  const forms: readonly (readonly [typed: string, stored: string])[] = [
    ['ada@example.com', 'ada@example.com'],
    [' Ada@Example.COM\t', 'ada@example.com'],
    ['ada+tag@example.com', 'ada+tag@example.com'],
    ["o'brien.x_y-z@sub.example.co.uk", "o'brien.x_y-z@sub.example.co.uk"],
    ['ZOE\u0308@example.com', 'zoë@example.com'],
    ['ÅNGSTRÖM@example.com', 'ångström@example.com'],
    ['用户@例子.公司', '用户@例子.公司'],
    ['用户@XN--FSQU00A.xn--55qx5d', '用户@例子.公司'],
    ['用户@例子。公司', '用户@例子.公司'],
    ['ada@ＥＸＡＭＰＬＥ．ｃｏｍ', 'ada@example.com'],
    ['ada@exam\u00adple.com', 'ada@example.com'],
    ['ada@BÜCHER.example', 'ada@bücher.example'],
    ['ada@bu\u0308cher.example', 'ada@bücher.example'],
    ['ada@faß.de', 'ada@faß.de'],
    ['ada@xn--fa-hia.de', 'ada@faß.de'],
    ['ada@K.example', 'ada@k.example'],
    [`ada@${'a'.repeat(63)}.com`, `ada@${'a'.repeat(63)}.com`],
    [`${'a'.repeat(64)}@example.com`, `${'a'.repeat(64)}@example.com`],
  ]
  for (const [typed, stored] of forms) assert.equal(emailFrom(typed), stored)
})

test('other texts are refused', () => {
  const none = [
    '', ' ', '@', 'ada', 'ada@', '@example.com', 'ada@@example.com', 'a@b@c', 'ada @example.com', 'ada@exam ple.com', 'ada@example..com',
    '.ada@example.com', 'ada.@example.com', 'a..b@example.com', 'ada@-example.com', 'ada@example.com-', 'ada@[127.0.0.1]', '"a b"@example.com',
    'Ada <ada@example.com>', 'ada@example.com,eve@example.com', 'ada@example.com;eve', 'ada@example.com\nbcc:eve@example.com', 'ada@exa\rmple.com',
    'ada\u0000@example.com', 'mailto:ada@example.com ', `${'a'.repeat(65)}@example.com`, `a@${'b'.repeat(64)}.com`, `a@${'b.'.repeat(130)}com`,
    'ada@example.com?bcc=eve@example.com', 'ada(comment)@example.com', 'ada\\@example.com',
    'ada\u200b@example.com', 'ada\u00a0@example.com', 'ada\u2003b@example.com', '\u202eada@example.com', 'ada\u0085@example.com',
    'ada\u034f@example.com', 'ada\ufe0f@example.com', 'a\u115fda@example.com', 'ada\u3164@example.com', 'ada\u2800@example.com',
    'ada\ufeff@例子.公司', 'ada@ex%61mple.com', 'ada@example.com/path', 'ada@example.com#x', 'ada@1.2.3.4', 'ada@0x7f.1', 'ada@1.2.3', 'ada@2130706433',
    'ada@[::1]', 'ada@example.com.', 'ada@.example.com', 'ada@\u200dx.com', 'ada@a\uff0fb.com', 'ada@\uff20example.com', 'ada@xn--.com',
    '=?utf-8?q?eve=40example.com?=@example.com', 'ada=?x@example.com', 'ada@ex_ample.com', `ada@${'ü'.repeat(60)}.com`, 'ada@a\u2044b.com', 'ada@☕.us', `${'a'.repeat(100_000)}@example.com`, `a@${'ﷺ.'.repeat(60)}com`,
  ] // biome-ignore format: a table
  for (const text of none) assert.equal(emailFrom(text), undefined, JSON.stringify(text))
})

test('the stored form of any input is its own stored form, and fits into an envelope', () => {
  const parts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  const address = fc.oneof(
    fc.emailAddress(),
    fc.tuple(parts, parts).map(([local, host]) => `${local}@${host}.example`),
    fc.string({ unit: ANY_CHARACTER }),
  )
  fc.assert(
    fc.property(address, (typed) => {
      const stored = emailFrom(typed)
      if (stored === undefined) return
      assert.equal(emailFrom(stored), stored)
      assert.ok(stored.length <= 254)
      assert.doesNotMatch(stored, /[\s\p{C}\p{Z}"<>,;:()\\]/u)
    }),
    { numRuns: 2_000 },
  )
})
