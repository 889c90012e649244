import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createEventParser, type StreamEvent } from '#client/live/event-parser.ts'

type Parsed = {
  readonly events: readonly StreamEvent[]
  readonly lastId: string
  readonly retry: number | undefined
}

function parse(pieces: readonly Uint8Array[]): Parsed {
  const parser = createEventParser()
  const events = pieces.flatMap((piece) => parser.push(piece))
  return { events, lastId: parser.lastId(), retry: parser.retry() }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const eventsOf = (text: string) => parse([bytes(text)]).events

/** The events of a whole text, read once more by the words of HTML 9.2.6, one character after the other. */
function reference(text: string): Parsed {
  const events: StreamEvent[] = []
  let [data, type, idBuffer, lastId] = ['', '', '', '']
  let retry: number | undefined
  let line = ''
  const characters = [...text.replace(/^\uFEFF/, '')]
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at] ?? ''
    if (character !== '\r' && character !== '\n') {
      line += character
      continue
    }
    if (character === '\r' && characters[at + 1] === '\n') at++
    if (line === '') {
      lastId = idBuffer
      if (data !== '') events.push({ name: type === '' ? 'message' : type, data: data.slice(0, -1) })
      ;[data, type] = ['', '']
    } else if (!line.startsWith(':')) {
      const [field = '', ...after] = line.split(':')
      const value = after.join(':').replace(/^ /, '')
      if (field === 'event') type = value
      if (field === 'data') data += `${value}\n`
      if (field === 'id' && !value.includes('\0')) idBuffer = value
      if (field === 'retry' && value !== '' && [...value].every((digit) => '0123456789'.includes(digit)))
        retry = Number(value)
    }
    line = ''
  }
  return { events, lastId, retry }
}

const anyLine = fc.oneof(
  fc.constantFrom(
    '',
    '',
    'data',
    'data:',
    'data: ',
    'event',
    'id',
    'id:',
    ':',
    ': comment',
    'retry: 20',
    'retry: 2x',
    'retry',
  ),
  fc
    .tuple(
      fc.constantFrom('data', 'event', 'id', 'retry', 'Data', ' data', 'date'),
      fc.constantFrom(':', ': ', ':  ', '::'),
      fc.string({ unit: fc.constantFrom('a', ' ', ':', 'é', '€', '😀', '\0', '\uFEFF', '7') }),
    )
    .map((parts) => parts.join('')),
)
const anyText = fc
  .tuple(
    fc.boolean(),
    fc.array(fc.tuple(anyLine, fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n'))),
  )
  .map(([hasMark, lines]) => (hasMark ? '\uFEFF' : '') + lines.map((line) => line.join('')).join(''))

function split(whole: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (whole.length + 1)).toSorted((one, other) => one - other)]
  return places.map((place, index) => whole.subarray(place, places[index + 1]))
}

test('a stream has the same events however its bytes are split', () => {
  fc.assert(
    fc.property(anyText, fc.array(fc.nat()), (text, cuts) => {
      assert.deepEqual(parse(split(bytes(text), cuts)), reference(text))
    }),
    { numRuns: 1_000 },
  )
})

test('a stream of single bytes has the same events', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      assert.deepEqual(parse([...bytes(text)].map((byte) => Uint8Array.of(byte))), reference(text))
    }),
  )
})

/** Those of HTML, section 9.2.6. */
test('the examples of the standard are read as it says', () => {
  const message = (data: string) => ({ name: 'message', data })
  assert.deepEqual(eventsOf('data: YHOO\ndata: +2\ndata: 10\n\n'), [message('YHOO\n+2\n10')])
  const text = ': test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n'
  assert.deepEqual(eventsOf(text), [message('first event'), message('second event'), message(' third event')])
  assert.equal(parse([bytes(text)]).lastId, '')
  assert.deepEqual(eventsOf('data\n\ndata\ndata\n\ndata:'), [message(''), message('\n')])
  assert.deepEqual(eventsOf('data:test\n\ndata: test\n\n'), [message('test'), message('test')])
})

test('an id counts when its event is complete', () => {
  const parser = createEventParser()
  parser.push(bytes('id: 1\ndata: a\n\nid: 2\ndata: b\n'))
  assert.equal(parser.lastId(), '1')
  parser.push(bytes('\n'))
  assert.equal(parser.lastId(), '2')
  // As the service does after a silence.
  assert.deepEqual(parser.push(bytes(':\nid: 3\n\n')), [])
  assert.equal(parser.lastId(), '3')
})
