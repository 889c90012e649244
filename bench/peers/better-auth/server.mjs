// better-auth with sign-in by email, configured as in its guide. Prints its port and serves until it is killed.
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import pg from 'pg'

const server = createServer().listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const { port } = server.address()
const options = {
  database: new pg.Pool({ connectionString: process.argv[2], max: 10 }),
  baseURL: `http://127.0.0.1:${port}`,
  secret: randomBytes(32).toString('hex'),
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
}
await (await getMigrations(options)).runMigrations()
server.on('request', toNodeHandler(betterAuth(options)))
console.log(port)
