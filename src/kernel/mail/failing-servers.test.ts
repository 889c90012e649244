import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import { defaultConfig } from '#kernel/config/config.ts'
import type { SomeHandlers } from '#kernel/jobs.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { createLog } from '#kernel/log.ts'
import { testKernel } from '#test/harness.ts'
import { deliverMail, sendMail } from './mailer.ts'
import { composeMail } from './messages.ts'
import { createSmtpTransport, Refused, type Transport } from './transports.ts'

/** Short ones pass in a test; the others do not pass between two mails, even on a busy machine. */
const TIMES = { connect: 1_000, greeting: 1_000, socket: 1_000, idle: 400, mail: 3_000 }
const PATIENT = { connect: 10_000, greeting: 10_000, socket: 10_000, idle: 1_000, mail: 30_000 }
const mailTo = (to: string) => composeMail({ to, subject: 'Hello', paragraphs: ['Hello,', 'a line.'] })

/** The server's answer to a command (`connect` is the greeting, `.` the end of a mail); undefined: none. */
type Script = (command: string, line: string, connection: number) => string | undefined

const good: Script = (command) =>
  ({
    connect: '220 mail.example.com ESMTP',
    EHLO: '250-mail.example.com\r\n250 AUTH PLAIN',
    AUTH: '235 welcome',
    DATA: '354 go ahead',
    QUIT: '221 bye',
  })[command] ?? '250 OK'

/** A server that follows a script, which can be changed; with its mails and its connections. */
async function scriptedServer(context: TestContext, script: Script) {
  const server = { script, mails: [] as string[], sockets: new Set<Socket>(), connections: 0 }
  const listener = createServer((socket) => {
    const connection = ++server.connections
    server.sockets.add(socket)
    socket.on('close', () => server.sockets.delete(socket))
    socket.on('error', () => {})
    serve(socket, (command, line) => {
      const said = server.script(command, line, connection)
      if (command === '.' && said?.startsWith('250')) server.mails.push(line)
      return said
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  context.after(() => {
    for (const socket of server.sockets) socket.destroy()
    listener.close()
  })
  // A server that listens on a port.
  const { port } = listener.address() as AddressInfo
  const config = defaultConfig({
    mail: { transport: 'smtp', smtp_url: `smtp://ada:pass@127.0.0.1:${port}/` },
  })
  return Object.assign(server, { config })
}

function serve(socket: Socket, answer: (command: string, line: string) => string | undefined): void {
  const say = (text: string | undefined) => text !== undefined && socket.write(`${text}\r\n`)
  let unread = ''
  let isMail = false
  say(answer('connect', ''))
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    unread += chunk
    for (;;) {
      const end = isMail ? '\r\n.\r\n' : '\r\n'
      const at = unread.indexOf(end)
      if (at < 0) return
      const line = unread.slice(0, at)
      unread = unread.slice(at + end.length)
      const command = isMail ? '.' : (/^[A-Z]+/.exec(line)?.[0] ?? '')
      const said = answer(command, line)
      isMail = command === 'DATA' && said !== undefined && said.startsWith('354')
      say(said)
    }
  })
}

/** The normal script with another answer to one command. */
const but =
  (step: string, said: string | undefined): Script =>
  (command, ...rest) =>
    // After a failed EHLO the client sends HELO.
    command.replace('HELO', 'EHLO') === step ? said : good(command, ...rest)

const received = ({ mails }: { mails: readonly string[] }) =>
  mails.map((mail) => /^To: (\S+)@/m.exec(mail)?.[1]).toSorted()

for (const step of ['connect', 'EHLO', 'AUTH', 'MAIL', 'RCPT', 'DATA', '.']) {
  test(`a server that falls silent at ${step} delays a mail by its time-out, and no later mail`, async (context) => {
    const server = await scriptedServer(context, but(step, undefined))
    const transport = createSmtpTransport(server.config, TIMES)
    context.after(transport.close)
    const began = performance.now()
    await assert.rejects(transport.send(mailTo('first@example.com')), { code: 'ETIMEDOUT' })
    assert.ok(performance.now() - began < 30_000, `${performance.now() - began} ms`)
    server.script = good
    await transport.send(mailTo('second@example.com'))
    assert.deepEqual(received(server), ['second'])
  })

  test(`a server that answers garbage at ${step} fails the mail, and the next one is sent`, async (context) => {
    const server = await scriptedServer(context, but(step, '\u0000\u001b[2J what, me? \u00ff'))
    const transport = createSmtpTransport(server.config, PATIENT)
    context.after(transport.close)
    await assert.rejects(transport.send(mailTo('first@example.com')), (error) => !(error instanceof Refused))
    server.script = good
    await transport.send(mailTo('second@example.com'))
    assert.deepEqual(received(server), ['second'])
  })
}

test('a connection to a server that keeps sending without an answer is closed at the time limit of the mail', async (context) => {
  const server = await scriptedServer(context, but('MAIL', undefined))
  const timer = setInterval(() => {
    for (const socket of server.sockets) socket.write('250-wait\r\n')
  }, 20)
  context.after(() => clearInterval(timer))
  const transport = createSmtpTransport(server.config, TIMES)
  context.after(transport.close)
  await assert.rejects(transport.send(mailTo('first@example.com')), { code: 'EABORT' })
})

test('mails share connections, which end when they are idle', async (context) => {
  const server = await scriptedServer(context, good)
  const transport = createSmtpTransport(server.config, PATIENT)
  context.after(transport.close)
  for (const name of ['one', 'two', 'three']) await transport.send(mailTo(`${name}@example.com`))
  assert.equal(server.connections, 1)
  const [socket] = server.sockets
  if (socket !== undefined) await once(socket, 'close')
  assert.equal(server.sockets.size, 0)
  await transport.send(mailTo('four@example.com'))
  assert.deepEqual(received(server), ['four', 'one', 'three', 'two'])
})

const handlersOf = (kernel: Kernel, transport: Transport): SomeHandlers => ({
  'send-mail': ({ mail: sealed }, id) => deliverMail(kernel, transport, { id, sealed }),
  'answer-mail-request': async () => {},
  'log-pipeline-steps': async () => {},
})

test('a connection that hangs delays one mail, and all others are sent meanwhile', async (context) => {
  const { promise: hung, resolve: hang } = Promise.withResolvers<void>()
  const { promise: enough, resolve: done } = Promise.withResolvers<void>()
  const server = await scriptedServer(context, (command, line, connection) => {
    if (command === '.' && connection === 1) return void hang()
    if (command === '.' && server.mails.length === 28) done()
    return good(command, line, connection)
  })
  const kernel = await testKernel()
  // The default time-outs, which the test does not wait for.
  const transport = createSmtpTransport(server.config)
  context.after(transport.close)
  await kernel.jobs.start(handlersOf(kernel, transport), [])
  await sendMail(kernel, mailTo('unlucky@example.com'))
  await hung
  for (let count = 0; count < 29; count++) await sendMail(kernel, mailTo(`lucky-${count}@example.com`))
  await enough
  const isWaiting = [...server.sockets].length > 1
  assert.ok(isWaiting, 'the first connection still hangs')
  assert.ok(server.connections > 1 && server.connections <= 5, `${server.connections} connections`)
})

test('a mail to an unknown recipient is dropped, after other refusals it is tried again, and other mails are sent', async (context) => {
  const server = await scriptedServer(context, (command, line, connection) => {
    if (command !== 'RCPT') return good(command, line, connection)
    if (line.includes('unknown')) return '550 5.1.1 <unknown@example.com>: no such user'
    return line.includes('relay') ? '550 5.7.1 relaying denied' : '250 OK'
  })
  const lines: string[] = []
  const log = createLog({
    level: 'info',
    format: 'json',
    destination: { write: (line) => void lines.push(line) },
  })
  const kernel = { ...(await testKernel()), log }
  const transport = createSmtpTransport(server.config, PATIENT)
  context.after(transport.close)
  const handlers = handlersOf(kernel, transport)
  for (const name of ['unknown', 'relay', 'known']) await sendMail(kernel, mailTo(`${name}@example.com`))
  assert.equal(await kernel.jobs.drain(handlers), 3)
  assert.deepEqual(received(server), ['known'])
  assert.equal(server.connections, 1, 'a refused recipient costs no connection')
  const { rows } =
    await sql`select 1 from service_jobs.job where name = 'send-mail' and state = 'retry'`.execute(kernel.db)
  assert.equal(rows.length, 1)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).event),
    ['mail_refused'],
  )
  assert.doesNotMatch(lines.join(), /unknown@/)
})
