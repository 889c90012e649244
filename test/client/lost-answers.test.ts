import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { request } from 'undici'
import { createClient } from '#client/client.ts'
import { withClient } from '#test/database.ts'
import { testService } from '#test/harness.ts'
import { startLoopbackServer } from '#test/loopback-server.ts'

const CALLS = 500
const t = await testService()
const { apiKey: key } = await t.key(['gateway.read', 'gateway.write', 'gateway.rpc.execute'])
const sql = async (text: string) => withClient(t.clientUrl, async (client) => (await client.query(text)).rows)

before(() =>
  sql(`
    create table mail (n int not null, way text not null);
    create function send_mail(n int) returns void language sql as $$ insert into mail values (n, 'rpc') $$`),
)

/** What gets lost of an attempt: the request, its answer, or the second half of that. */
const LOSSES = ['answer', 'half', 'request'] as const
const lossOf = (n: number, attempt: number) => LOSSES[(n + attempt) % LOSSES.length]
/** How many attempts of a call get lost: up to two more than the client repeats. */
const lossesOf = (n: number): number => Math.floor(n / 5) % 6

/** A proxy between client and service, which knows the calls by their numbers. */
async function startProxy(): Promise<string> {
  const attempts = new Map<number, number>()
  const { url } = await startLoopbackServer(async (incoming, response) => {
    const body = (await incoming.toArray()).join('')
    const n = Number(/"n":(\d+)/.exec(body)?.[1])
    const attempt = attempts.get(n) ?? 0
    attempts.set(n, attempt + 1)
    const loss = attempt < lossesOf(n) ? lossOf(n, attempt) : undefined
    if (loss === 'request') return void response.destroy()
    const { connection: _, host: __, ...headers } = incoming.headers
    const answer = await request(t.url + incoming.url, { method: 'POST', headers, body })
    const text = Buffer.from(await answer.body.arrayBuffer())
    if (loss === 'answer') return void response.destroy()
    response.writeHead(answer.statusCode, {
      'content-type': 'application/json',
      'content-length': text.length,
    })
    if (loss === undefined) return void response.end(text)
    response.write(text.subarray(0, text.length / 2), () => response.destroy())
  })
  return url
}

test('of five hundred writes whose answers get lost none is done twice, and those under a key are done', async () => {
  const db = createClient({ url: await startProxy(), key })
  const mail = db.from('mail')
  const ways = {
    rpc: (n: number) => db.rpc('send_mail', { n }),
    plain: (n: number) => mail.insert({ n, way: 'plain' }),
    transaction: (n: number) =>
      db.transaction([mail.insert({ n, way: 'transaction' })]).idempotent(randomUUID()),
    keyed: (n: number) => mail.insert({ n, way: 'keyed' }).idempotent(randomUUID()),
    rows: (n: number) => mail.insert({ n, way: 'rows' }).select('n').single().idempotent(randomUUID()),
  }
  const calls = Array.from({ length: CALLS }, (_, n) => async () => {
    const way = (['rpc', 'plain', 'transaction', 'keyed', 'rows'] as const)[n % 5] ?? 'rpc'
    const { error } = await ways[way](n)
    return { n, isKeyed: way !== 'rpc' && way !== 'plain', code: error?.code }
  })
  const results: { readonly n: number; readonly isKeyed: boolean; readonly code: string | undefined }[] = []
  const queue = calls.values()
  const worker = async () => {
    for (const call of queue) results.push(await call())
  }
  await Promise.all(Array.from({ length: 50 }, worker))

  const written = Map.groupBy(await sql('select n from mail'), ({ n }) => n)
  for (const { n, isKeyed, code } of results) {
    const attempts = Math.min(lossesOf(n) + 1, isKeyed ? 4 : 1)
    const isAnswered = lossesOf(n) < attempts
    const hasArrived =
      isAnswered || Array.from({ length: attempts }).some((_, attempt) => lossOf(n, attempt) !== 'request')
    assert.equal(written.get(n)?.length ?? 0, hasArrived ? 1 : 0, `call ${n}`)
    assert.equal(code, isAnswered ? undefined : 'network', `call ${n}`)
  }
  assert.equal(results.length, CALLS)
})
