/**
 * Measures the memory of inserts that wait for their database. Sends more 8 MB bodies of several kinds to a locked table than
 * `limits.bodies` allows, and prints how much the process grew and how much of that it counted. `node bench/body-memory.ts`
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { joinEmbedded } from '#kernel/db/embedded/join.ts'
import { createTemporaryHome, startProgram } from '#test/journeys/program.ts'

const MIB = 2 ** 20
const BODY = 8 * MIB
const SENT = 30

/** An insert of the length BODY. */
const filled = (row: (index: number) => string): string => {
  const rows: string[] = []
  for (let length = 0; length < BODY; length += (rows.at(-1)?.length ?? 0) + 1) rows.push(row(rows.length))
  return `{"table_name":"note","insert_body":[${rows.join(',')}]}`
}

const KINDS: Readonly<Record<string, string>> = {
  'rows of five columns': filled(
    (id) => `{"id":${id},"text":"note ${id}","n":${id * 7},"flag":true,"at":"2026-01-01T00:00:00Z"}`,
  ),
  'long texts': filled((id) => `{"id":${id},"text":"${'x'.repeat(2_000)}"}`),
  'decimal numbers': filled((id) => `{"id":${id},"n":${id}.10,"text":"${id}"}`),
  'jsonb of many arrays': filled((id) => `{"id":${id},"json":[${'[],'.repeat(500)}[]]}`),
}

const residentMemory = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1_024

const home = await createTemporaryHome()
const mib = (bytes: number): string => `${(bytes / MIB).toFixed()} MiB`

for (const [name, body] of Object.entries(KINDS)) {
  // One process for each kind, so that the heap of one does not affect the next.
  const program = await startProgram(home.folder, {
    SERVICE_LIMITS__INSERT_ROWS: '10000000',
    ...(process.argv[2] && { SERVICE_LIMITS__BODIES: process.argv[2] }),
  })
  const data = (file: string) => readFileSync(path.join(home.folder, 'data', file), 'utf8').trim()
  const headers = {
    'content-type': 'application/json',
    apikey: data('admin-key'),
    'x-service-client': 'default',
  }
  const password = data('postgres-password')
  const server = await joinEmbedded(path.join(home.folder, 'data/postgres'), password)
  const lock = new pg.Client(server?.url('postgres', password, 'gatehouse_default'))
  const answers: Promise<void>[] = []
  try {
    await lock.connect()
    await lock.query(`set role gatehouse_default; drop table if exists note;
      create table note (id int, text text, n numeric, flag boolean, at timestamptz, json jsonb)`)
    await lock.query('begin; lock table note in access exclusive mode')
    const { pid = 0 } = program.child
    const before = residentMemory(pid)
    let most = before
    const watch = setInterval(() => {
      most = Math.max(most, residentMemory(pid))
    }, 20)
    const rejected: number[] = []
    for (let index = 0; index < SENT; index++)
      answers.push(
        fetch(`${program.url}/gateway/insert`, { method: 'PUT', headers, body }).then(
          ({ status }) => void rejected.push(status),
          () => void rejected.push(0),
        ),
      )
    await sleep(10_000)
    clearInterval(watch)
    const metrics = await (await fetch(`${program.url}/metrics`, { headers })).text()
    const counted = Number(/^gatehouse_body_bytes (\d+)/m.exec(metrics)?.[1] ?? Number.NaN)
    const [now, top] = [residentMemory(pid) - before, most - before]
    console.log(
      `${name.padEnd(22)} ${SENT - rejected.length} of ${SENT} waiting; counted ${mib(counted)}, process grew by ${mib(now)}, at most by ${mib(top)}`,
    )
  } finally {
    await lock.end()
    await Promise.all(answers)
    await program.end('SIGTERM')
  }
}
await home.remove()
