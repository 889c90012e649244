import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { type Answer, actor, testService } from '#test/harness.ts'
import { parsePipelines } from './pipelines-file.ts'
import { createPipelineRegistry } from './registry.ts'

const parse = (text: string) => parsePipelines(defaultConfig(), { name: 'pipelines.yaml', text }, {})
const pipelines = createPipelineRegistry(
  parse(`
pipelines:
  cities-by-country:
    description: Sums of latitudes
    source: { table_name: cities, schema_name: geo, client: reporting }
    transform: { group_by: country }
    sink: { table_name: archive.countries }
  bare:
    source: { view_name: good_books, conditions: { eq_column: id, eq_value: 12345678901234567890 } }
    transform: {}
`),
)
const t = await testService({ pipelines })

const list = ({ apikey }: { readonly apikey?: string }) =>
  actor(t.url, apikey === undefined ? {} : { apikey }).get('/pipelines/templates')
const refusal = ({ status, body }: Answer) => [status, body.code]
const namesOf = ({ body }: Answer) => body.templates.map(({ name }: { name: string }) => name)

test('templates are listed by name, with their tables, clients and definition', async () => {
  const answer = await list(await keyWith(['pipelines.run']))
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(answer.body.templates, [
    {
      ...{
        name: 'bare',
        description: null,
        source_table: 'good_books',
        sink_table: null,
        has_transform: false,
      },
      ...{ source_client: null, sink_client: null },
      definition: {
        source: {
          view_name: 'good_books',
          conditions: { eq_column: 'id', eq_value: Number('12345678901234567890') },
        },
        transform: {},
      },
    },
    {
      ...{ name: 'cities-by-country', description: 'Sums of latitudes', has_transform: true },
      ...{ source_table: 'geo.cities', sink_table: 'archive.countries' },
      ...{ source_client: 'reporting', sink_client: null },
      definition: {
        description: 'Sums of latitudes',
        source: { table_name: 'cities', schema_name: 'geo', client: 'reporting' },
        transform: { group_by: 'country' },
        sink: { table_name: 'archive.countries' },
      },
    },
  ])
  assert.ok(answer.text.includes('"eq_value":12345678901234567890'), 'a number keeps its digits')
})

const keyWith = async (rights: readonly string[], more = {}) => ({
  apikey: (await t.key(rights, more)).apiKey,
})

test('a key needs pipelines.run, and sees no template with a client that it may not use', async () => {
  assert.deepEqual(refusal(await list({})), [401, 'api_key_required'])
  assert.deepEqual(refusal(await list({ apikey: 'svc_x.y' })), [401, 'invalid_api_key'])
  assert.deepEqual(refusal(await list(await keyWith(['gateway.*']))), [403, 'insufficient_rights'])
  assert.equal((await t.admin.get('/pipelines/templates')).body.templates.length, 2)
  for (const [more, names] of [
    [{}, ['bare', 'cities-by-country']],
    [{ client_name: null }, ['bare', 'cities-by-country']],
    [{ client_overrides: [] }, ['bare']],
    [{ client_overrides: ['other'] }, ['bare']],
    [{ client_overrides: ['reporting'] }, ['bare', 'cities-by-country']],
    [{ client_name: 'reporting', client_overrides: [] }, ['bare', 'cities-by-country']],
  ] as const)
    assert.deepEqual(namesOf(await list(await keyWith(['*'], more))), names, JSON.stringify(more))
})

test('a replaced file is listed at once', async () => {
  const before = pipelines.all()
  pipelines.replace(parse('pipelines: { constructor: {}, later: {} }'))
  assert.deepEqual(namesOf(await t.admin.get('/pipelines/templates')), ['constructor', 'later'])
  pipelines.replace(before)
})
