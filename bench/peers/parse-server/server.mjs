// parse-server on PostgreSQL, with its defaults. Prints its port and serves until it is killed.
import express from 'express'
import { ParseServer } from 'parse-server'

const [databaseURI, port, masterKey] = process.argv.slice(2)
const server = new ParseServer({
  databaseURI,
  appId: 'bench',
  masterKey,
  serverURL: `http://127.0.0.1:${port}/parse`,
  allowClientClassCreation: false,
  logsFolder: null,
  logLevel: 'error',
  silent: true,
})
await server.start()
express()
  .use('/parse', server.app)
  .listen(Number(port), '127.0.0.1', () => console.log(port))
