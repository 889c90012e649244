import assert from 'node:assert/strict'
import { isIP } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import { PASSWORD, testService } from '#test/harness.ts'
import { ANY_CHARACTER } from '#test/property/any-character.ts'
import { addressOfHop } from './client-address.ts'

const rules = { sign_in: { requests: 2, window: 60_000 } }
const t = await testService({
  config: {
    rate_limits: { enabled: true, rules },
    server: { trusted_proxies: ['127.0.0.0/8', '10.0.0.0/8', 'fd00::/8'] },
  },
})
const ada = await t.signUp('Ada')

test('a hop is an address with or without a port, and is normalised', () => {
  const spellings: Readonly<Record<string, readonly string[]>> = {
    '192.0.2.1': [
      '192.0.2.1', ' 192.0.2.1\t', '192.0.2.1:1', '192.0.2.1:50000', '::ffff:192.0.2.1', '::FFFF:c000:201', '[::ffff:192.0.2.1]:443',
      '0:0:0:0:0:ffff:192.0.2.1', '[::ffff:c000:0201]',
    ],
    '2001:db8::1': [
      '2001:db8::1', '2001:DB8:0:0:0:0:0:1', '2001:0db8:0000::0001', '[2001:db8::1]', '[2001:db8::1]:50000', '2001:db8::0.0.0.1',
    ],
    '::1': ['::1', '[::1]:8080'],
  } // biome-ignore format: a table
  for (const [address, hops] of Object.entries(spellings))
    for (const hop of hops) assert.equal(addressOfHop(hop), address, hop)
})

test('other texts are not addresses', () => {
  const none = [
    '', ' ', 'unknown', '_hidden', 'localhost', 'example.com', '1.2.3', '1.2.3.4.5', '256.1.1.1', '01.2.3.4', '0x7f.0.0.1', '2130706433',
    '1.2.3.4:', '1.2.3.4:123456', '1.2.3.4:x', '1.2.3.4/8', '[1.2.3.4]:80', '[::1', '::1]', '[::1]x', '[::1]:', 'fe80::1%eth0', 'fe80::1%<b>',
    '[fe80::1%25eth0]:80', '"[2001:db8::1]:80"', 'for=1.2.3.4', "' or 1=1 --", '<script>', '1.2.3.4 5.6.7.8', '1:2:3:4:5:6:7:8:9', '::ffff:1.2.3',
    '9'.repeat(10_000), `::${'0'.repeat(50)}1`,
  ] // biome-ignore format: a table
  for (const hop of none) assert.equal(addressOfHop(hop), undefined, hop)
})

test('normalising a hop gives an address, and is idempotent', () => {
  const hop = fc.oneof(
    fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.constantFrom('', ':80'))
      .map(([address, port]) => address + port),
    fc.ipV6().map((address) => `[${address}]:443`),
    fc.string({ unit: fc.constantFrom(...'0123456789abcdefF:.[]% ') }),
    fc.string({ unit: ANY_CHARACTER }),
  )
  fc.assert(
    fc.property(hop, (text) => {
      const address = addressOfHop(text)
      if (address === undefined) return
      assert.ok(isIP(address) > 0, address)
      assert.match(address, /^[\da-f.:]{2,39}$/)
      assert.equal(addressOfHop(address), address)
    }),
    { numRuns: 2_000 },
  )
})

const signIn = (forwarded: string, password = PASSWORD) =>
  t.anon.post(
    '/api/auth/sign-in/email',
    { email: ada.email, password },
    { headers: { 'x-forwarded-for': forwarded } },
  )

/** The address in the new session. */
async function addressSeen(forwarded: string): Promise<string> {
  const { body } = await signIn(forwarded)
  const headers = { authorization: `Bearer ${body.token}` }
  return (await t.anon.get('/api/auth/get-session', { headers })).body.session.ipAddress
}

test('the address is the rightmost hop that is not a trusted proxy, in any spelling', async () => {
  assert.equal(await addressSeen('198.51.100.1'), '198.51.100.1')
  assert.equal(await addressSeen('1.1.1.1, 198.51.100.2:40000, 10.0.0.7'), '198.51.100.2')
  assert.equal(await addressSeen('[2001:DB8:0::3]:443, ::ffff:10.0.0.7, [fd00::1]:8080'), '2001:db8::3')
})

test('a hop that is not an address is ignored, with everything further left', async () => {
  assert.equal(await addressSeen('198.51.100.1, <script>alert(1)</script>'), '127.0.0.1')
  assert.equal(await addressSeen('198.51.100.1, unknown, 10.0.0.7'), '10.0.0.7')
  assert.doesNotMatch(t.log.join('\n'), /script|unknown,/)
})

test('all spellings of an address share one bucket', async () => {
  const hops = [
    '203.0.113.1',
    '203.0.113.1:50001',
    '::ffff:203.0.113.1',
    '[::ffff:cb00:7101]:50002',
    '203.0.113.2',
  ]
  const statuses: number[] = []
  for (const hop of hops) statuses.push((await signIn(hop)).status)
  assert.deepEqual(statuses, [200, 200, 429, 429, 200])
})
