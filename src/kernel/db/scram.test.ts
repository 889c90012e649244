import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { scramVerifier } from './scram.ts'

// RFC 7677, section 3.
const SALT = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
const MESSAGE =
  'n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,' +
  's=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0'
const PROOF = Buffer.from('dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=', 'base64')
const SIGNATURE = '6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4='

test('a verifier has the keys of the published exchange', async () => {
  const verifier = await scramVerifier('pencil', SALT)
  const [, salt, stored = '', server = ''] =
    /^SCRAM-SHA-256\$4096:([^$]+)\$([^:]+):(.+)$/.exec(verifier) ?? assert.fail(verifier)
  assert.equal(salt, SALT.toString('base64'))
  assert.equal(hmac(Buffer.from(server, 'base64'), MESSAGE).toString('base64'), SIGNATURE)
  const signature = hmac(Buffer.from(stored, 'base64'), MESSAGE)
  const clientKey = PROOF.map((byte, index) => byte ^ (signature[index] ?? 0))
  assert.equal(createHash('sha256').update(clientKey).digest('base64'), stored)
})

test('two verifiers of the same password differ', async () => {
  assert.notEqual(await scramVerifier('pencil'), await scramVerifier('pencil'))
})

test('a password that PostgreSQL would normalise is refused, without being repeated', async () => {
  for (const password of ['', 'pässword', 'pass\nword']) {
    await assert.rejects(
      scramVerifier(password),
      (error: Error) => !password || !error.message.includes(password),
    )
  }
})

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
