import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secureRandom } from '#kernel/random.ts'
import { newUserCode, shownUserCode, typedUserCode } from './user-code.ts'

test('a code has eight letters without vowels, each as likely as the others', () => {
  const counts = new Map<string, number>()
  const codes = 20_000
  for (let made = 0; made < codes; made++) {
    const code = newUserCode(secureRandom)
    assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/)
    for (const letter of code) counts.set(letter, (counts.get(letter) ?? 0) + 1)
  }
  const expected = (codes * 8) / 20
  // Chi-squared with 19 degrees of freedom: 60 is exceeded once in 300,000 runs; the bias of a plain remainder gives 2,000.
  const distance = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  assert.equal(counts.size, 20)
  assert.ok(distance < 60, `${distance}`)
})

test('bytes that would make some letters more likely are left out', () => {
  const bytes = [255, 254, 240, 239, 0, 1, 2, 3, 19, 20, 39, 5]
  const draw = (count: number) => Buffer.from(bytes.splice(0, count))
  assert.equal(newUserCode(draw), 'ZBCDFZBZ')
})

test('a code is read as people type it', () => {
  assert.equal(shownUserCode('WDJBMJHT'), 'WDJB-MJHT')
  for (const typed of ['WDJB-MJHT', 'wdjbmjht', ' wdjb mjht ', 'W-D-J-B M.J.H.T', 'WDJB–MJHT'])
    assert.equal(typedUserCode(typed), 'WDJBMJHT', typed)
  for (const typed of ['', 'WDJB-MJH', 'WDJB-MJHTT', 'ADJB-MJHT', 'WDJB-MJH1', 'ＷDJB-MJHT', '%WDJBMJH'])
    assert.equal(typedUserCode(typed), undefined, typed)
})
