import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cohort } from './cohort.ts'
import type { LiveTable } from './live-table.ts'
import { startStream } from './stream.ts'
import type { StreamParts } from './stream-parts.ts'

/** Calls of a stream's watch from one sign of life to the next. */
const SILENCE = 15

/** The stream of a caller whom no policy binds, of a table without rows. The test says when the caller is judged, and when it is looked at. */
function watchedStream() {
  const plan = {
    request: { columns: [] },
    output: [],
    table: { schema: 'public', name: 'note', isPlain: true },
  }
  const driver = {
    keepsGuards: true,
    plan: async () => plan,
    select: async () => ({ json: [Buffer.from('[]')], facts: () => ({ hasMore: false }) }),
  }
  const caller = { client: { name: 'default' }, backend: driver, grant: { kind: 'admin' }, needed: [] }
  const fetch = { kind: 'fetch', caller, plan, timings: { observe() {} } }
  const table = { schema: 'public', table: 'note' }
  const live = { name: 'note', table, key: ['id'], cohort: 'note', reads: { claims: [], tables: [] }, fetch }
  let own: Cohort | undefined
  let look = () => {}
  let position = 1
  let judging = Promise.resolve()
  const parts = {
    kernel: {
      random: (bytes: number) => Buffer.alloc(bytes),
      config: { limits: { stream_buffer: 1_000_000 }, gateway: { max_rows: 10 } },
      coherence: { isTrusted: () => true },
      streams: {
        watch(stream: { mayGoOn(): void }) {
          look = () => stream.mayGoOn()
          return () => {}
        },
      },
    },
    reader: {
      version: () => 1,
      position: () => `position-${position}`,
      snapshots: { acquire: async () => () => {} },
      add(cohort: Cohort) {
        own = cohort
      },
      release(cohort: Cohort) {
        cohort.state = 'idle'
      },
    },
    request: { gateway: caller, clientAddress: '127.0.0.1', id: '1', routeOptions: {} },
    reply: { raw: { destroyed: false, once() {} } },
    renewal: { follow: () => () => judging },
    asked: { tables: [], snapshot: true },
    lastId: undefined,
    proof: undefined,
    changes: () => 1,
    pages: { open() {} },
  }
  // It takes no more of all these than that.
  const { body } = startStream(parts as unknown as StreamParts, {
    tables: [live as unknown as LiveTable],
    version: 1,
  })
  let text = ''
  body.on('data', (bytes: Buffer) => {
    text += bytes
  })
  return {
    ids: () => [...text.matchAll(/^id: (.+)$/gm)].map(([, id]) => id ?? ''),
    has: (word: string) => text.includes(word),
    /** A reading of the cohort has found a row, up to this position. */
    tell(at: number) {
      position = at
      const [member] = own?.members ?? []
      const key = { json: '{"id":1}', values: ['1'] }
      const bytes = Buffer.from('event: change\ndata: {"table":"note","key":{"id":1}}\n')
      member?.deliver({ events: [{ key, op: 'insert' }], bytes }, own ?? assert.fail())
    },
    /** Others write, elsewhere. */
    moveTo(at: number) {
      position = at
    },
    holdJudge() {
      const { promise, resolve } = Promise.withResolvers<void>()
      judging = promise
      return resolve
    },
    silence() {
      for (let second = 1; second <= SILENCE; second++) look()
    },
  }
}

const turn = () => new Promise((resolve) => void setImmediate(resolve))

test('no sign of life has an id that is after an event which waits for its caller to be judged', async () => {
  const stream = watchedStream()
  while (!stream.has('event: ready')) await turn()
  const judge = stream.holdJudge()
  stream.tell(2)
  // Its turn has come, but it is not written yet.
  await turn()
  stream.moveTo(3)
  stream.silence()
  await turn()
  assert.ok(!stream.has('event: change'))
  assert.equal(stream.ids().length, 1, 'a reader whose connection breaks now resumes after ready')
  judge()
  while (!stream.has('event: change')) await turn()
  await turn()
  stream.silence()
  await turn()
  assert.match(stream.ids().at(-1) ?? '', /position-3$/)
})
