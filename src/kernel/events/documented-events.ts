import { EVENTS, type EventData, type EventName } from '../events.ts'
import { named } from '../http/document/components.ts'
import { ACTOR_KINDS, type Actor } from './actor.ts'
import { payloadText } from './payload.ts'
import { EVENT_NAMES } from './route-keys.ts'

const EXAMPLE = { id: '0198c0de-0000-7000-8000-000000000000', at: new Date('2026-01-31T12:00:00Z') }

/** The payload of an event with its example. It has no rows. */
export const examplePayload = (name: EventName): Readonly<Record<string, unknown>> =>
  JSON.parse(payloadText({ ...EXAMPLE, name, data: EVENTS[name].example, actor: exampleActor(name) }))

function exampleActor(name: EventName): Actor {
  const { category } = EVENTS[name]
  if (category === 'backup') return { kind: 'system', id: null }
  return category === 'auth'
    ? { kind: 'user', id: '0198c0de-0000-7000-8000-000000000005' }
    : { kind: 'api_key', id: '0198c0de-0000-7000-8000-000000000007' }
}

/** `webhooks` of the OpenAPI document: the requests that the service sends, one for each event of the catalogue. */
export const documentedEvents = (tag: string): object =>
  Object.fromEntries(EVENT_NAMES.map((name) => [name, { post: requestOf(name, tag) }]))

function requestOf(name: EventName, tag: string): object {
  const { title, description } = EVENTS[name]
  const words = name.split('_').map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
  return {
    operationId: `receive${words.join('')}`,
    summary: title,
    description: `${description} Sent to webhooks of this event, signed by Standard Webhooks, at least once.`,
    tags: [tag],
    security: [],
    parameters: SIGNATURE,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { ...payloadSchema(name), ...named(`${words.join('')}Event`) },
          example: examplePayload(name),
        },
      },
    },
    responses: {
      '2XX': { description: 'The event is delivered' },
      '410': { description: 'It is not delivered again, and the webhook is set inactive' },
      default: { description: 'It is delivered again later, with the same webhook-id' },
    },
  }
}

const TEXT = { type: 'string' }

/** The headers of the Standard Webhooks specification. */
const SIGNATURE = Object.entries({
  'webhook-id': 'The id of the event, the same in each attempt',
  'webhook-timestamp': 'Seconds since 1970, of this attempt',
  'webhook-signature':
    '`v1,` and the base64 of the HMAC-SHA256 of `webhook-id.webhook-timestamp.body`; one for each secret that signs, separated by spaces',
}).map(([name, description]) => ({ name, in: 'header', required: true, description, schema: TEXT }))

const REQUEST_ID = { type: ['string', 'null'], description: 'x-request-id of the request that caused it' }

function payloadSchema(name: EventName): object {
  const { client, data } = examplePayload(name)
  const members = {
    id: { ...TEXT, format: 'uuid', description: 'Also in the header webhook-id' },
    type: { ...TEXT, enum: [name] },
    timestamp: { ...TEXT, format: 'date-time' },
    client: client === null ? { type: 'null' } : TEXT,
    request_id: REQUEST_ID,
    data: dataSchema(name, data as object), // of every payload
  }
  const test = { type: 'boolean', enum: [true], description: 'Only in a test delivery' }
  return { type: 'object', required: Object.keys(members), properties: { ...members, test } }
}

function dataSchema(name: EventName, example: object): object {
  const facts = Object.entries(example).map(([member, value]) => [member, memberSchema(member, value)])
  const rows = EVENTS[name].category === 'gateway' ? ROWS : {}
  const old = name === 'gateway_delete' ? OLD_ROWS : {}
  return {
    type: 'object',
    required: Object.keys(example),
    properties: { ...Object.fromEntries(facts), actor: ACTOR, ...rows, ...old },
  }
}

const ACTOR = {
  type: 'object',
  required: ['kind', 'id'],
  properties: {
    kind: { ...TEXT, enum: ACTOR_KINDS },
    id: { type: ['string', 'null'], description: 'Of a user or an API key' },
  },
  description: 'What has caused it: the user of the session, or else the key',
  ...named('EventActor'),
}

const OLD_ROWS = {
  old_rows: {
    type: 'array',
    items: {},
    description: 'The deleted rows as they were, in the columns that the caller has got',
  },
}

const ROWS = {
  rows: { type: 'array', items: {}, description: 'The rows that the caller has got' },
  rows_omitted: {
    type: 'boolean',
    enum: [true],
    description: 'They are longer than 256 KB, or lack what the filter needs',
  },
}

/** Examples have no null. */
function memberSchema(member: string, value: unknown): object {
  const type = Array.isArray(value) ? 'array' : typeof value === 'number' ? 'integer' : 'string'
  return {
    type: Object.hasOwn(NULLABLE, member) ? [type, 'null'] : type,
    ...(Array.isArray(value) && { items: TEXT }),
  }
}

/** All members that may be null, in `data` of any event. */
const NULLABLE: Readonly<Record<Exclude<NullableMember, 'request_id'>, true>> = {
  label: true,
  pipeline_name: true,
  size_bytes: true,
}
type NullableOf<Data> = { [Member in keyof Data]: null extends Data[Member] ? Member : never }[keyof Data]
type NullableMember = { [Name in EventName]: NullableOf<EventData[Name]> }[EventName]
