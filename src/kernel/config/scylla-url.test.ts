import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readScyllaUrl } from '#kernel/config/scylla-url.ts'

test('a ScyllaDB URL is split into its parts', () => {
  assert.deepEqual(readScyllaUrl('scylladb://app:p%40ss%2Fw@node1,10.0.0.2:9043/shop?dc=dc1&tls=true'), {
    hosts: ['node1', '10.0.0.2'],
    port: 9043,
    user: 'app',
    password: 'p@ss/w',
    keyspace: 'shop',
    dc: 'dc1',
    tls: true,
  })
  assert.deepEqual(readScyllaUrl(' cassandra://node1/shop '), {
    hosts: ['node1'],
    port: 9042,
    user: undefined,
    password: '',
    keyspace: 'shop',
    dc: undefined,
    tls: false,
  })
})

test('other URLs, and those with further parameters, are refused', () => {
  for (const text of [
    'postgres://a:b@node1/shop',
    'scylladb://node1',
    'scylladb://node1/',
    'scylladb://node1/shop/more',
    'scylladb://node1/9shop',
    'scylladb://node1/"shop"',
    'scylladb://node1/system_auth',
    'scylladb://node1/SYSTEM',
    'scylladb:///shop',
    'scylladb://node1,/shop',
    'scylladb://node1:0/shop',
    'scylladb://node1:99999/shop',
    'scylladb://user@node1/shop',
    'scylladb://user:@node1/shop',
    'scylladb://us:er:pass@node1/shop',
    'scylladb://user:p@ss@node1/shop',
    'scylladb://user:%zz@node1/shop',
    'scylladb://%2Ftmp%2Fsocket/shop',
    'scylladb://node1/shop?dc=',
    'scylladb://node1/shop?dc=a&dc=b',
    'scylladb://node1/shop?tls=maybe',
    'scylladb://node1/shop?ca=/etc/passwd',
    'scylladb://node1/shop?toString=1',
    'scylladb://node1/shop#x',
  ])
    assert.equal(readScyllaUrl(text), undefined, text)
})
