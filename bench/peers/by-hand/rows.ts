/**
 * A hand-written server for comparison: Fastify and `pg` with prepared statements; rows are parsed and stringified. Prints its port and
 * serves until it is killed. `node bench/peers/by-hand/rows.ts postgres://…`
 */
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 })
const app = fastify()
app.get<{ Params: { id: string } }>('/row/:id', async ({ params }) => {
  const query = { name: 'row', text: 'select * from bench_rows where id = $1', values: [params.id] }
  return (await pool.query(query)).rows
})
app.get<{ Params: { count: string } }>('/rows/:count', async ({ params }) => {
  const query = { name: 'rows', text: 'select * from bench_rows where id <= $1', values: [params.count] }
  return (await pool.query(query)).rows
})
await app.listen({ port: 0, host: '127.0.0.1' })
console.log((app.server.address() as AddressInfo).port) // the address of a TCP server
