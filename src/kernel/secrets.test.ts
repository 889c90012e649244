import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { secureRandom } from './random.ts'
import { createSecrets, DERIVED, newSecret, SEALED } from './secrets.ts'

const SECRET = 'a secret of thirty-two characters'
const secrets = createSecrets(SECRET, secureRandom)
const OWNER = 'row 1'

test('a sealed text opens unchanged, and is not readable before', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (plain) => {
      const sealed = secrets.seal('mail', plain, OWNER)
      assert.match(sealed, /^v1\.[0-9a-f]{8}\.[\w-]+$/)
      assert.equal(secrets.open('mail', sealed, OWNER), plain)
      if (plain.length > 8) assert.ok(!Buffer.from(sealed.split('.')[2] ?? '', 'base64url').includes(plain))
    }),
  )
})

test('the same text is sealed differently each time', () => {
  const sealed = new Set(Array.from({ length: 100 }, () => secrets.seal('mail', 'the same', OWNER)))
  assert.equal(sealed.size, 100)
})

test('a text with one changed bit does not open', () => {
  const [version, id, data = ''] = secrets.seal('mail', 'a link with a token', OWNER).split('.')
  const bytes = Buffer.from(data, 'base64url')
  for (let at = 0; at < bytes.length; at++) {
    for (const bit of [1, 128]) {
      const altered = Buffer.from(bytes)
      altered[at] = (altered[at] ?? 0) ^ bit
      assert.equal(
        secrets.open('mail', `${version}.${id}.${altered.toString('base64url')}`, OWNER),
        undefined,
      )
    }
  }
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(
      secrets.open('mail', `${version}.${id}.${bytes.toString('base64url', 0, length)}`, OWNER),
      undefined,
    )
  }
})

test('a text that was sealed for an owner opens for that owner only', () => {
  const sealed = secrets.seal('provider-token', 'a token', 'row 1')
  assert.equal(secrets.open('provider-token', sealed, 'row 1'), 'a token')
  assert.equal(secrets.open('provider-token', sealed, 'row 2'), undefined)
  assert.equal(secrets.openUnbound('provider-token', sealed), undefined)
  assert.equal(secrets.open('provider-token', sealed, ''), undefined)
})

test('other texts do not open, and throw no error', () => {
  const { id } = { id: secrets.seal('mail', 'x', OWNER).split('.')[1] }
  for (const text of [
    '',
    '.',
    '..',
    'v1',
    `v1.${id}`,
    `v1.${id}.`,
    `v2.${id}.AAAA`,
    `v1.${id}.%%%`,
    'v1.00000000.AAAA',
  ]) {
    assert.equal(secrets.open('mail', text, OWNER), undefined, text)
  }
  fc.assert(fc.property(fc.string(), (text) => secrets.open('mail', `v1.${id}.${text}`, OWNER) === undefined))
})

test('a text that was sealed for one purpose opens for no other', () => {
  const purposes = ['client-url', 'provider-token', 'mail'] as const
  for (const purpose of purposes) {
    const sealed = secrets.seal(purpose, 'text', OWNER)
    for (const other of purposes)
      assert.equal(secrets.open(other, sealed, OWNER), other === purpose ? 'text' : undefined)
  }
})

test('after a rotation the previous secret still opens texts; without it, only newly sealed texts open', () => {
  const old = secrets.seal('mail', 'sealed before', OWNER)
  const rotated = createSecrets('another secret of 32 characters!!', secureRandom, SECRET)
  assert.equal(rotated.open('mail', old, OWNER), 'sealed before')
  const fresh = rotated.seal('mail', 'sealed after', OWNER)
  assert.equal(secrets.open('mail', fresh, OWNER), undefined)

  const later = createSecrets('another secret of 32 characters!!', secureRandom)
  assert.equal(later.open('mail', old, OWNER), undefined)
  assert.equal(later.open('mail', fresh, OWNER), 'sealed after')
})

test('a derived key depends on secret, purpose and name only', () => {
  const derived = secrets.derive('database-role', 'gatehouse')
  assert.match(derived, /^[\w-]{43}$/)
  assert.equal(createSecrets(SECRET, secureRandom).derive('database-role', 'gatehouse'), derived)
  const others = [
    secrets.derive('database-role', 'gatehouse2'),
    secrets.derive('installation', 'gatehouse'),
    createSecrets(`${SECRET}!`, secureRandom).derive('database-role', 'gatehouse'),
  ]
  assert.equal(new Set([derived, ...others]).size, 4)
})

test('docs/operations.md lists every kind of sealed value and every use of the secret', () => {
  const section = /^## Secrets and their rotation$([\s\S]*?)^## /m.exec(
    readFileSync('docs/operations.md', 'utf8'),
  )
  const listed = [...(section?.[1] ?? '').matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name)
  assert.deepEqual(listed, [...SEALED, ...DERIVED])
})

test('neither the secret nor a key can be read from a sealed text', () => {
  const sealed = secrets.seal('mail', 'text', OWNER)
  assert.ok(!sealed.includes(SECRET))
  assert.notEqual(
    sealed.split('.')[1],
    createSecrets(`${SECRET}!`, secureRandom).seal('mail', 'text', OWNER).split('.')[1],
  )
  assert.match(newSecret(secureRandom), /^[\w-]{43}$/)
})
