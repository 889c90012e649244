// parse-server on PostgreSQL, with its defaults. Prints its port and serves until it is killed.
import express from 'express'

// It reads this when it is loaded, and would make a folder of logs in the working directory.
process.env.PARSE_SERVER_LOGS_FOLDER = 'null'
const { ParseServer } = await import('parse-server')

const [databaseURI, port, masterKey] = process.argv.slice(2)
const server = new ParseServer({
  databaseURI,
  appId: 'bench',
  masterKey,
  serverURL: `http://127.0.0.1:${port}/parse`,
  allowClientClassCreation: false,
  logLevel: 'error',
  silent: true,
})
await server.start()
express()
  .use('/parse', server.app)
  .listen(Number(port), '127.0.0.1', () => console.log(port))
