import assert from 'node:assert/strict'
import { test } from 'node:test'
import { types } from 'cassandra-driver'
import fc from 'fast-check'
import { rowText, writerOf } from '#databases/drivers/scylla/rows.ts'
import { type CqlType, dataTypes, typeOfClass } from '#databases/drivers/scylla/types.ts'
import { bound } from '#databases/drivers/scylla/values.ts'
import { parseJson } from '#databases/request/json.ts'
import type { Json } from '#databases/request/request.ts'

type Name = keyof typeof dataTypes & string
const typeOf = (name: Name): CqlType => ({ code: dataTypes[name] as number })
const duration: CqlType = { code: dataTypes.duration }

/** Binds the value, and reads the bytes back as JSON. */
const readBack = (value: Json, type: CqlType) => {
  const read = bound(value, type, 'c')
  return rowText([read], [{ at: 0, head: '', write: writerOf(type) }], false).slice(1, -1)
}
const refused = (value: Json, type: CqlType) =>
  assert.throws(
    () => bound(value, type, 'c'),
    { code: 'invalid_value', status: 422, details: { column: 'c' } },
    `${JSON.stringify(value)} as ${JSON.stringify(type)}`,
  )

test('a value that does not fit its type is refused, and nothing is cut, rounded or guessed', () => {
  const unfit: Partial<Record<Name, readonly Json[]>> = {
    tinyint: [128, -129, '12abc', 1.5, '', ' ', true, [], {}, '0x10', '1e2', '１'],
    smallint: [32768, '-32769', 'NaN'],
    int: [2147483648, '-2147483649', 1e12, '1_000', '1.0', 'null'],
    bigint: [parseJson('9223372036854775808'), '-9223372036854775809', 1e19],
    varint: ['1.5', '--1', '1'.repeat(10_001)],
    decimal: ['1,5', '.', '1e', 'NaN', 'Infinity', '1e99999', `0.${'1'.repeat(10_000)}`],
    float: ['1e39', 'one', '1.5.5'],
    double: ['1e309', 'inf', '0x1p3'],
    boolean: ['maybe', 2, '', 'tru'],
    uuid: ['0197f2c8', '0197f2c800007000800000000000000g', 7],
    timeuuid: ['0197f2c8-0000-7000-8000-000000000001'],
    inet: ['10.0.0', '10.0.0.1/8', 'localhost', 'fe80::1%eth0', '1'],
    blob: ['deadbeef', '0xdead', '\\xabc', '\\xzz'],
    date: ['2026-02-30', '2026-13-01', '31.01.2026', '2026-1-1', 20260131, ''],
    time: ['24:00:00', '10:60', '10', '10:20:30.1234567890', '10:20:61'],
    timestamp: [
      '2026-02-30T00:00:00Z',
      '2026-01-31T25:00:00Z',
      '2026-01-31T00:00:00.0001Z',
      'now',
      1769853600000,
    ],
    ascii: ['ü'],
    text: [['a'], { a: 1 }],
  }
  for (const [name, values] of Object.entries(unfit))
    for (const value of values) refused(value, typeOf(name as Name))
  for (const value of ['P', 'PT', 'P1', '1D', 'P1Y-1D', 'P2147483648D', 'PT9999999999999S', 'P1.5D'])
    refused(value, duration)
})

test('numbers keep every digit, and their scale', () => {
  for (const text of [
    '0',
    '-1',
    '9223372036854775807',
    '-9223372036854775808',
    '1000000',
    '127',
    '128',
    '-128',
    '-129',
  ])
    for (const name of ['bigint', 'varint', 'decimal'] as const)
      assert.equal(readBack(parseJson(text), typeOf(name)), text)
  for (const text of ['1.50', '-0.001', '0.00', '123456789012345678901234567890.123456789'])
    assert.equal(readBack(text, typeOf('decimal')), text)
  for (const text of ['1e3', '22017e3', '-15e1', '0e2'])
    assert.equal(readBack(text, typeOf('decimal')), text, 'or it would be the key of another row')
  assert.equal(readBack('12.5e-3', typeOf('decimal')), '0.0125')
  assert.equal(readBack('1e5000', typeOf('decimal')), '1e5000')
  assert.equal(readBack('-.5', typeOf('decimal')), '-0.5')
  assert.deepEqual(
    [readBack(0.1, typeOf('float')), readBack('3.4028235e38', typeOf('float'))],
    ['0.1', '3.4028235e+38'],
  )
  assert.deepEqual([readBack('-0', typeOf('double')), readBack('NaN', typeOf('double'))], ['-0', '"NaN"'])
  assert.equal(readBack('-infinity', typeOf('float')), '"-Infinity"')
  const digits = fc.tuple(fc.bigInt({ min: -(10n ** 60n), max: 10n ** 60n }), fc.nat(40))
  fc.assert(
    fc.property(digits, ([number, scale]) => {
      const sign = number < 0n ? '-' : ''
      const padded = String(number < 0n ? -number : number).padStart(scale + 1, '0')
      const text =
        scale === 0 ? `${sign}${padded}` : `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`
      assert.equal(readBack(text, typeOf('decimal')), text)
      assert.equal(readBack(String(number), typeOf('varint')), String(number))
    }),
  )
  fc.assert(
    fc.property(
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
      (number) => {
        assert.equal(Number(readBack(number, typeOf('double'))), number)
      },
    ),
  )
  fc.assert(
    fc.property(
      fc.float({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
      (number) => {
        assert.equal(Math.fround(Number(readBack(number, typeOf('float')))), number)
      },
    ),
  )
})

test('times are ISO 8601 in UTC, as every driver writes them', () => {
  const instants: readonly (readonly [string, string])[] = [
    ['2026-01-31', '2026-01-31T00:00:00Z'],
    ['2026-01-31 10:20', '2026-01-31T10:20:00Z'],
    ['2026-01-31T10:20:30.500Z', '2026-01-31T10:20:30.5Z'],
    ['2026-01-31T10:20:30.120000+02:00', '2026-01-31T08:20:30.12Z'],
    ['2026-01-31T23:20:30-0330', '2026-02-01T02:50:30Z'],
    ['1969-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z'],
    ['0044-03-15T00:00:00Z', '0044-03-15T00:00:00Z'],
  ]
  for (const [given, written] of instants) assert.equal(readBack(given, typeOf('timestamp')), `"${written}"`)
  for (const text of ['2026-01-31', '2024-02-29', '0001-01-01', '9999-12-31'])
    assert.equal(readBack(text, typeOf('date')), `"${text}"`)
  for (const text of ['00:00:00', '10:20:30.5', '23:59:59.999999999'])
    assert.equal(readBack(text, typeOf('time')), `"${text}"`)
  const spans = [
    'PT0S',
    'P1Y2M3D',
    'PT4H5M6.5S',
    '-P1D',
    'P-1Y-2M',
    'PT-0.000000001S',
    'P14M',
    'P2W',
    'PT90S',
  ]
  const written = [
    'PT0S',
    'P1Y2M3D',
    'PT4H5M6.5S',
    undefined,
    'P-1Y-2M',
    'PT-0.000000001S',
    'P1Y2M',
    'P14D',
    'PT1M30S',
  ]
  spans.forEach((text, index) => {
    if (written[index] === undefined) refused(text, duration)
    else assert.equal(readBack(text, duration), `"${written[index]}"`)
  })
})

test('collections, records and tuples take values of their types, and no nulls where CQL has none', () => {
  const list: CqlType = { code: dataTypes.list, info: typeOf('int') }
  const map: CqlType = { code: dataTypes.map, info: [typeOf('int'), typeOf('text')] }
  const tuple: CqlType = { code: dataTypes.tuple, info: [typeOf('int'), typeOf('text')] }
  const fields = [
    { name: 'a', type: typeOf('int') },
    { name: '__proto__', type: typeOf('text') },
  ]
  const record: CqlType = { code: dataTypes.udt, info: { keyspace: 'k', name: 't', fields } }
  assert.equal(readBack([1, '2'], list), '[1,2]')
  assert.equal(readBack({ 1: 'a', 2: '"' }, map), '{"1":"a","2":"\\""}')
  assert.equal(readBack([1, null], tuple), '[1,null]')
  assert.equal(readBack(JSON.parse('{"a":1,"__proto__":"x"}'), record), '{"a":1,"__proto__":"x"}')
  assert.equal(readBack({}, record), '{"a":null,"__proto__":null}')
  for (const value of [[null], ['x'], 1, '[1]', { 0: 1 }]) refused(value, list)
  for (const value of [{ a: 'x' }, { 1: null }, [[1, 'x']]]) refused(value, map)
  for (const value of [[1], [1, 'a', 2], ['x', 'a'], {}]) refused(value, tuple)
  for (const value of [{ b: 1 }, { a: 'x' }, [1], { constructor: 1 }]) refused(value, record)
})

test('sets and maps are sorted and have each value once, and a map with a repeated key does not fit', () => {
  const set = (of: CqlType): CqlType => ({ code: dataTypes.set, info: of })
  const map: CqlType = { code: dataTypes.map, info: [typeOf('decimal'), typeOf('int')] }
  assert.equal(readBack(['b', 'a', 'b', 'é', ''], set(typeOf('text'))), '["","a","b","é"]')
  assert.equal(readBack([10, 9, -1], set(typeOf('int'))), '[-1,9,10]')
  assert.equal(
    readBack(['1.50', '-1.53', '1.5', '-1.5', '0.0', '12'], set(typeOf('decimal'))),
    '[-1.53,-1.5,0.0,1.50,12]',
  )
  assert.equal(readBack([['b', 'a'], ['a']], set(set(typeOf('text')))), '[["a"],["a","b"]]')
  assert.equal(readBack({ '12': 1, '1.5': 2 }, map), '{"1.5":2,"12":1}')
  refused({ '1.5': 1, '1.50': 2 }, map)
})

test('types are parsed from names of classes', () => {
  const of = (text: string) => typeOfClass(`org.apache.cassandra.db.marshal.${text}`)
  const at = 'org.apache.cassandra.db.marshal'
  const vector = of(`VectorType(${at}.FrozenType(${at}.ListType(${at}.UTF8Type)) , 2)`)
  assert.ok(vector)
  assert.equal(readBack([['a'], []], vector), '[["a"],[]]')
  const record = of(
    `UserType(k,74,61:${at}.Int32Type,5f5f70726f746f5f5f:${at}.VectorType(${at}.FloatType , 1))`,
  )
  assert.ok(record)
  assert.equal(readBack(JSON.parse('{"a":1,"__proto__":[0.5]}'), record), '{"a":1,"__proto__":[0.5]}')
  assert.equal(of('LineStringType'), undefined)
  const wide = of(`VectorType(${at}.UTF8Type , 1)`)
  assert.ok(wide)
  for (const length of [0, 1, 127, 128, 16_383, 16_384, 300_000])
    assert.equal(readBack(['x'.repeat(length)], wide), JSON.stringify(['x'.repeat(length)]))
})

test('numbers of any length have the bytes of the server, which identify partitions', () => {
  const bytesOf = (text: string, name: Name) => bound(text, typeOf(name), 'c')?.toString('hex')
  for (const text of ['0', '1', '102', '127', '128', '-128', '-129', '255', '256', '-32768', '8388607']) {
    assert.equal(
      bytesOf(text, 'varint'),
      types.Integer.toBuffer(types.Integer.fromString(text)).toString('hex'),
    )
    const decimal = `${text}.5`
    const known = types.BigDecimal.toBuffer(types.BigDecimal.fromString(decimal))
    assert.equal(bytesOf(decimal, 'decimal'), known.toString('hex'), decimal)
  }
  assert.equal(bytesOf('102', 'varint'), '66')
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 200n), max: 2n ** 200n }), (number) => {
      const known = types.Integer.toBuffer(types.Integer.fromString(String(number)))
      assert.equal(bytesOf(String(number), 'varint'), known.toString('hex'))
    }),
  )
})

test('an address of any bytes is read back as these bytes', () => {
  const inet = typeOf('inet')
  const back = (bytes: Buffer) => bound(JSON.parse(writerOf(inet)(bytes)), inet, 'c')
  assert.equal(
    writerOf(inet)(Buffer.from('20010db8000000010000000200000003', 'hex')),
    '"2001:db8:0:1:0:2:0:3"',
  )
  assert.equal(writerOf(inet)(Buffer.from('20010db8000000000001000000000002', 'hex')), '"2001:db8::1:0:0:2"')
  const group = fc.oneof(fc.constant(0), fc.nat(0xffff))
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const bytes = Buffer.from(groups.flatMap((part) => [part >> 8, part & 0xff]))
      assert.deepEqual(back(bytes), bytes)
    }),
  )
})

test('JSON that is written can be read: late years, and keys of maps that are not texts', () => {
  const instant = typeOf('timestamp')
  for (const milliseconds of [
    8_640_000_000_000_000n,
    253_402_300_800_000n,
    -62_198_755_200_000n,
    2n ** 62n,
  ]) {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64BE(milliseconds)
    assert.deepEqual(bound(JSON.parse(writerOf(instant)(bytes)), instant, 'c'), bytes)
  }
  const key: CqlType = { code: dataTypes.tuple, info: [typeOf('int'), typeOf('text')] }
  const map: CqlType = { code: dataTypes.map, info: [key, typeOf('int')] }
  assert.equal(readBack({ '[1,"a"]': 1, '[2,null]': 2 }, map), '{"[1,\\"a\\"]":1,"[2,null]":2}')
  for (const text of ['[1', '', '[1,"a"]x', 'null', '[[1,"a"]]']) refused({ [text]: 1 }, map)
})

test('every form of an address has these bytes', () => {
  for (const [given, written] of [
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
    ['64:ff9b::', '64:ff9b::'],
    ['::', '::'],
    ['::ffff:1.2.3.4', '::ffff:102:304'],
    ['1:2:3:4:5:6:1.2.3.4', '1:2:3:4:5:6:102:304'],
    ['10.0.0.1', '10.0.0.1'],
  ] as const)
    assert.equal(readBack(given, typeOf('inet')), JSON.stringify(written), given)
})
