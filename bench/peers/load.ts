/** Load generator without wrk: reads a `Load` from standard input and prints responses per second. `node bench/peers/load.ts SECONDS` */
import { json } from 'node:stream/consumers'
import { Pool } from 'undici'
import type { Load } from '../load.ts'

const seconds = Number(process.argv[2])
const {
  url,
  method = 'GET',
  headers = {},
  targets,
  numbered,
  connections,
} = (await json(process.stdin)) as Load // written by ../load.ts
const pool = new Pool(url, { connections })
let turn = 0
let answers = 0

const numberedValue = ({ prefix, from }: NonNullable<Load['numbered']>, number: number): string =>
  `${prefix}${String(from + number).padStart(9, '0')}`

const began = performance.now()
const until = began + seconds * 1_000
async function caller(): Promise<void> {
  while (performance.now() < until) {
    const number = turn++
    const target = targets[number % targets.length]
    if (target === undefined) throw new Error('no targets')
    const own = numbered && { [numbered.name]: numberedValue(numbered, number) }
    const { statusCode, body } = await pool.request({ ...target, method, headers: { ...headers, ...own } })
    await body.dump({ limit: Number.POSITIVE_INFINITY })
    if (statusCode >= 300) throw new Error(`${target.path} answered ${statusCode}`)
    answers++
  }
}
await Promise.all(Array.from({ length: connections }, caller))
console.log((answers * 1_000) / (performance.now() - began))
await pool.close()
