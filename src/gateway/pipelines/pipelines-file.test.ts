import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { ConfigError, defaultConfig } from '#kernel/config/config.ts'
import { parsePipelines, readPipelinesFile } from './pipelines-file.ts'

const config = defaultConfig()
const parse = (text: string, env = {}) => parsePipelines(config, { name: 'pipelines.yaml', text }, env)

function problemsOf(text: string, env = {}): string[] {
  try {
    parse(text, env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.split('\n')
  }
}

test('a pipeline has the types of a request: numbers keep their digits, and quoted values stay text', () => {
  const [[name, definition] = []] = parse(
    `
pipelines:
  cities:
    description: Cities of \${COUNTRY}
    source:
      table_name: cities
      columns: [id, name]
      conditions:
        - { eq_column: country, eq_value: "\${COUNTRY}" }
        - { operator: gt, column: population, value: 12345678901234567890 }
        - { operator: in, column: code, value: ["007", 7, true, null] }
      limit: 100
      client: reporting
    transform:
      group_by: country
      aggregation_column: lat
      aggregation_strategy: cumulative_sum
      aggregation_dedup: true
      column_aliases: { country: land, count: }
    sink: { table_name: archive.cities, on_conflict: id }
`,
    { COUNTRY: 'NL' },
  )
  assert.equal(name, 'cities')
  assert.equal(
    JSON.stringify(definition),
    '{"description":"Cities of NL","source":{"table_name":"cities","columns":["id","name"],"conditions":' +
      '[{"eq_column":"country","eq_value":"NL"},{"operator":"gt","column":"population","value":12345678901234567890},' +
      '{"operator":"in","column":"code","value":["007",7,true,null]}],"limit":100,"client":"reporting"},' +
      '"transform":{"group_by":"country","aggregation_column":"lat","aggregation_strategy":"cumulative_sum",' +
      '"aggregation_dedup":true,"column_aliases":{"country":"land","count":null}},' +
      '"sink":{"table_name":"archive.cities","on_conflict":"id"}}',
  )
})

test('an empty file, a file without pipelines and an empty pipeline are valid', () => {
  assert.equal(parse('').size, 0)
  assert.equal(parse('pipelines:\n').size, 0)
  assert.deepEqual([...parse('pipelines:\n  later:\n')], [['later', {}]])
})

test('every problem names the file, the line, the field and the closest known name', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['pipeline:\n  a: {}\n', '1 pipeline', 'unknown field; did you mean pipelines?'],
    ['pipelines: text\n', '1 pipelines', 'must be a section with names of pipelines'],
    [
      'pipelines:\n  a: text\n',
      '2 pipelines.a',
      'must be a section with description, source, transform, sink',
    ],
    ['pipelines:\n  a:\n    sorce: {}\n', '3 pipelines.a.sorce', 'unknown field; did you mean source?'],
    [
      'pipelines:\n  a:\n    source:\n      where: t\n',
      '4 pipelines.a.source.where',
      'unknown field; known here: table_name, table, view_name, schema_name, columns, conditions, limit, client',
    ],
    [
      'pipelines:\n  a:\n    source:\n      table_name: t\n      limit: many\n',
      '5 pipelines.a.source.limit',
      'must be a whole number from 0',
    ],
    [
      'pipelines:\n  a:\n    transform: { time_granularity: year }\n',
      '3 pipelines.a.transform.time_granularity',
      'must be one of day, hour, minute',
    ],
    [
      'pipelines:\n  a:\n    transform:\n      aggregation_dedup: maybe\n',
      '4 pipelines.a.transform.aggregation_dedup',
      'must be true or false',
    ],
    [
      'pipelines:\n  a:\n    source:\n      conditions:\n        - { operator: near, column: a, value: 1 }\n',
      '4 pipelines.a.source.conditions',
      '',
    ],
    ['pipelines:\n  a:\n    source: { columns: "a,((" }\n', '3 pipelines.a.source.columns', ''],
    [
      'pipelines:\n  a:\n    sink: { table: t, table_name: u }\n',
      '3 pipelines.a.sink',
      'table_name, table, view_name contradict',
    ],
    ['pipelines:\n  "a b": {}\n', '2 pipelines.a b', 'a name of a pipeline must match'],
    ['pipelines:\n  __proto__: {}\n', '2 pipelines.__proto__', 'a name of a pipeline must match'],
    [
      `pipelines:\n  ${'a'.repeat(64)}: {}\n`,
      `2 pipelines.${'a'.repeat(64)}`,
      'a name of a pipeline must match',
    ],
    ['pipelines:\n  a: {}\n  a: {}\n', '3 pipelines.a', 'given twice; first on line 2'],
    [
      'pipelines:\n  a:\n    description: $' + '{NOT_SET}\n',
      '3 pipelines.a.description',
      'the environment variable NOT_SET is not set',
    ],
    ['pipelines:\n  a: {\n', '3', 'not valid YAML'],
  ]
  for (const [text, place, says] of cases) {
    const [problem = '', ...more] = problemsOf(text)
    assert.ok(problem.startsWith(`pipelines.yaml:${place}: ${says}`), `${text}${problem}`)
    assert.deepEqual(more, [], text)
  }
})

test('names of the prototype of an object are names like others', () => {
  const pipelines = parse(
    'pipelines:\n  constructor:\n    transform:\n      column_aliases: { __proto__: a, toString: b }\n',
  )
  assert.equal(pipelines.get('toString'), undefined)
  const aliases = pipelines.get('constructor')?.transform?.column_aliases ?? {}
  assert.deepEqual(Object.entries(aliases), [
    ['__proto__', 'a'],
    ['toString', 'b'],
  ])
  assert.equal(Object.getPrototypeOf(aliases), Object.prototype)
  assert.deepEqual(problemsOf('pipelines:\n  a:\n    source: { constructor: t }\n').length, 1)
})

test('a file that is large in memory is refused in seconds of processor time', () => {
  const aliases = Array.from({ length: 5_000 }, (_, i) => `k${i}: &a${i} v\nj${i}: *a${i}\n`).join('')
  const laughs = `a: &a [x,x,x,x,x,x,x,x]\n${[...'bcdefgh'].map((name, i) => `${name}: &${name} [${Array(8).fill(`*${'abcdefgh'[i]}`).join()}]\n`).join('')}`
  for (const text of [
    aliases,
    laughs,
    `pipelines: ${'['.repeat(50_000)}`,
    `pipelines:\n${'- '.repeat(50_000)}`,
  ]) {
    const began = process.cpuUsage()
    assert.ok(problemsOf(text).length > 0)
    const { user } = process.cpuUsage(began)
    assert.ok(user < 3_000_000, `${user} µs: ${text.slice(0, 40)}`)
  }
  const many = Array.from({ length: 1_001 }, (_, i) => `  p${i}: {}\n`).join('')
  assert.deepEqual(problemsOf(`pipelines:\n${many}`), [
    'pipelines.yaml:1 pipelines: has more than 1000 pipelines',
  ])
})

test('the default file may be absent, a configured one may not', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-test-pipelines-'))
  try {
    const reading = (pipelines_file?: string) => () =>
      readPipelinesFile(
        defaultConfig({ gateway: { ...(pipelines_file !== undefined && { pipelines_file }) } }),
        folder,
      )
    assert.equal(reading()(), undefined)
    assert.throws(reading('other.yaml'), /^ConfigError: other\.yaml: cannot be read: ENOENT/)
    assert.throws(reading('.'), /^ConfigError: \.: is not a file$/)
    writeFileSync(path.join(folder, 'pipelines.yaml'), 'pipelines: {}')
    assert.deepEqual(reading()(), { name: 'pipelines.yaml', text: 'pipelines: {}' })
    writeFileSync(path.join(folder, 'other.yaml'), '#'.repeat(262_145))
    assert.throws(reading('other.yaml'), /other\.yaml: is larger than 256 KiB$/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
