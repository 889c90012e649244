import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outboundFinding } from './outbound-checks.ts'

const findingOf = (networks: string[], http = false) =>
  outboundFinding({ outbound: { allow_networks: networks, allow_http: http } })

test('the doctor says where requests for callers may go, and finds a network with the metadata service', () => {
  assert.deepEqual(findingOf([]), {
    subject: 'outbound',
    ok: true,
    says: 'requests for callers go by https to public addresses',
  })
  const opened = findingOf(['10.0.7.0/24', '127.0.0.1'], true)
  assert.ok(opened.ok)
  assert.match(opened.says, /http and https to public addresses and 10\.0\.7\.0\/24, 127\.0\.0\.1$/)
  for (const network of ['0.0.0.0/0', '169.254.0.0/16', '169.254.169.254']) {
    const { ok, says } = findingOf([network])
    assert.equal(ok, false)
    assert.match(says, /narrow outbound\.allow_networks/)
  }
})
