/**
 * Addresses that the service never reaches for a caller (gateway.md 12), in many spellings: the authority of a URL without its port. Each
 * feature with outbound requests runs all of them.
 */
export const FORBIDDEN_HOSTS: readonly string[] = [
  // IPv4: loopback, private, link-local, metadata services, shared, special-purpose, multicast.
  ...['127.0.0.1', '127.255.255.254', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '0.0.0.0'],
  ...['169.254.169.254', '168.63.129.16', '100.64.0.1', '100.100.100.200', '192.0.0.192', '192.0.2.1'],
  ...[
    '192.88.99.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.250',
    '240.0.0.1',
  ],
  '255.255.255.255',
  // Decimal, octal, hexadecimal and short.
  ...['2130706433', '3232235777', '2852039166', '0177.0.0.1', '017700000001', '0300.0250.1.1', '0x7f000001'],
  ...['0x7f.0.0.1', '0x7f.1', '0xA9FEA9FE', '127.1', '127.0.1', '0', '10.1', '0x0', '00000000177.1'],
  // A dot at the end, and users.
  ...[
    '127.0.0.1.',
    '2130706433.',
    '127.1.',
    'user@127.0.0.1',
    'user:word@127.0.0.1',
    'public.example@127.0.0.1',
  ],
  ...[
    'public.example%00@127.0.0.1',
    'public.example\\@127.0.0.1',
    'public.example%2f@127.0.0.1',
    '@127.0.0.1',
  ],
  // Percent signs, other digits, other dots, invisible characters.
  ...['%31%32%37.0.0.1', '127%2e0%2e0%2e1', '%31%36%39.254.169.254', '１２７.０.０.１', '①②⑦.⓪.⓪.①'],
  ...['127。0。0。1', '127．0．0．1', '𝟏𝟐𝟕.𝟎.𝟎.𝟏', '127.0.\u00ad0.1', '127.0.0.1\t', '12\n7.0.0.1'],
  // IPv6: loopback, unspecified, link-local with and without a zone, local, site-local, multicast, discard, documentation.
  ...[
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[0000::0001]',
    '[fe80::1]',
    '[fe80::1%25eth0]',
    '[fe80::1%eth0]',
  ],
  ...[
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[fec0::1]',
    '[ff02::1]',
    '[100::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[5f00::1]',
  ],
  // IPv4 inside of IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ORCHID.
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:169.254.169.254]', '[0:0:0:0:0:ffff:a9fe:a9fe]'],
  ...['[::127.0.0.1]', '[::7f00:1]', '[::ffff:0:127.0.0.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b::a9fe:a9fe]'],
  ...[
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2002:a9fe:a9fe::1]',
    '[2001::1]',
    '[2001:0:7f00:1::]',
    '[2001:20::1]',
  ],
]

/** Host names that resolve to such addresses. */
export const FORBIDDEN_NAMES: Readonly<Record<string, readonly string[]>> = {
  localhost: ['127.0.0.1', '::1'],
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'unspecified.example': ['0.0.0.0'],
  'private.example': ['10.0.0.5'],
  'several.example': ['10.0.0.1', '192.168.0.1', 'fd00::1'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'translated.example': ['64:ff9b::7f00:1'],
  'tunnel.example': ['2002:7f00:1::1'],
  'zone.example': ['fe80::1%lo'],
  'metadata.example': ['169.254.169.254'],
  '127.0.0.1.address.example': ['127.0.0.1'],
}
