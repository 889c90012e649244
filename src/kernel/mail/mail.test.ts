import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { sql } from 'kysely'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { systemClock } from '#kernel/clock.ts'
import { type Config, defaultConfig } from '#kernel/config/config.ts'
import { secureRandom } from '#kernel/random.ts'
import { testKernel } from '#test/harness.ts'
import { removeFolder } from '#test/temporary-folder.ts'
import { deliverMail, sendMail } from './mailer.ts'
import { composeMail } from './messages.ts'
import { createMailTransport, outboxFolder, readOutbox, type Transport } from './transports.ts'

const LINK = 'https://auth.example.com/api/auth/verify-email?token=abc&callbackURL=%2Fa'
const mail = composeMail({
  to: 'zoë@example.com',
  subject: 'Grüße & <b>willkommen</b>',
  paragraphs: ['Hello Zoë <script>alert("1")</script>,', 'please confirm.', 'It works once.'],
  action: { label: 'Verify & go', url: LINK },
})

const configWith = (settings: Partial<Config['mail']>, dir = tmpdir()): Config =>
  defaultConfig({ mail: settings, server: { data_dir: dir } })
/** Transports keep connections, and a server that closes waits for those. */
const transports: Transport[] = []
function transportOf(config: Config): Transport {
  const transport = createMailTransport(config, systemClock, secureRandom)
  transports.push(transport)
  return transport
}

/** The parts of a message by content type, decoded. */
function partsOf(message: string): ReadonlyMap<string, string> {
  const boundary = /boundary="([^"]+)"/.exec(message)?.[1] ?? ''
  const parts = message.split(`--${boundary}`).slice(1, -1)
  return new Map(
    parts.map((part) => {
      const [head = '', ...body] = part.split('\r\n\r\n')
      const type = /content-type: ([\w/]+)/i.exec(head)?.[1] ?? ''
      const encoding = /content-transfer-encoding: (\S+)/i.exec(head)?.[1] ?? ''
      return [type, decoded(body.join('\r\n\r\n'), encoding)]
    }),
  )
}

function decoded(text: string, encoding: string): string {
  if (encoding === 'base64') return Buffer.from(text, 'base64').toString('utf8')
  if (encoding !== 'quoted-printable') return text
  const bytes = text
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

const header = (message: string, name: string): string =>
  new RegExp(`^${name}: (.*(?:\\r\\n[ \\t].*)*)`, 'mi').exec(message)?.[1] ?? ''

async function folder(context: TestContext): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'gatehouse-mail-'))
  context.after(() => removeFolder(dir))
  return dir
}

test('a mail has the same content in text and HTML, and user input is escaped', () => {
  assert.equal(
    mail.text,
    `Hello Zoë <script>alert("1")</script>,\n\nplease confirm.\n\nVerify & go:\n${LINK}\n\nIt works once.\n`,
  )
  assert.match(mail.html, /<p>Hello Zoë &lt;script&gt;alert\(&quot;1&quot;\)&lt;\/script&gt;,<\/p>/)
  assert.match(
    mail.html,
    /<a href="https:\/\/auth\.example\.com\/api\/auth\/verify-email\?token=abc&amp;callbackURL=%2Fa" /,
  )
  assert.match(mail.html, />Verify &amp; go<\/a>/)
  assert.doesNotMatch(mail.html, /<script/)
})

test('the outbox stores a mail as a file that only its owner can read, complete and in both forms', async (context) => {
  const config = configWith(
    { transport: 'outbox', from: 'Gatehouse <no-reply@example.com>' },
    await folder(context),
  )
  await transportOf(config).send(mail)
  const dir = outboxFolder(config)
  const [name = ''] = await readdir(dir)
  assert.match(name, /^[0-9a-f-]{36}\.eml$/)
  assert.equal((await stat(dir)).mode & 0o777, 0o700)
  assert.equal((await stat(path.join(dir, name))).mode & 0o777, 0o600)

  const message = await readFile(path.join(dir, name), 'utf8')
  assert.equal(header(message, 'From'), 'Gatehouse <no-reply@example.com>')
  assert.match(header(message, 'To'), /example\.com/)
  assert.match(header(message, 'Subject'), /^=\?UTF-8\?[QB]\?/)
  assert.match(header(message, 'Message-ID'), /^<.+@.+>$/)
  assert.ok(!Number.isNaN(Date.parse(header(message, 'Date'))))
  const parts = partsOf(message)
  assert.deepEqual([...parts.keys()], ['text/plain', 'text/html'])
  assert.equal(parts.get('text/plain')?.replaceAll('\r\n', '\n').trim(), mail.text.trim())
  assert.equal(parts.get('text/html')?.replaceAll('\r\n', '\n').trim(), mail.html.trim())
})

test('mails in the outbox are in the order in which they were sent', async (context) => {
  let time = 1_700_000_000_000
  const config = configWith({}, await folder(context))
  const transport = createMailTransport(config, () => new Date(time++), secureRandom)
  for (const subject of ['one', 'two', 'three']) await transport.send({ ...mail, subject })
  const subjects = (await readOutbox(config)).map(({ message }) => header(message, 'Subject'))
  assert.deepEqual(subjects, ['one', 'two', 'three'])
})

test('a line break in a name or a subject starts no header', async (context) => {
  const config = configWith({}, await folder(context))
  await transportOf(config).send(
    composeMail({ to: 'a@example.com', subject: 'Hi\r\nBcc: eve@example.com', paragraphs: ['a'] }),
  )
  const [{ message } = { message: '' }] = await readOutbox(config)
  assert.equal(header(message, 'Bcc'), '')
  assert.doesNotMatch(message, /^bcc:/im)
})

type Received = {
  readonly to: readonly string[]
  readonly message: string
  readonly user: unknown
  readonly secure: boolean
}

/** A mail server with STARTTLS and a self-signed certificate, whose login is `ada` and `pass word`. */
async function smtpServer(context: TestContext, options: SMTPServerOptions = {}) {
  const received: Received[] = []
  const server = new SMTPServer({
    authMethods: ['PLAIN', 'LOGIN'],
    onAuth: ({ username, password }, _session, done) =>
      username === 'ada' && password === 'pass word' ? done(null, { user: username }) : done(new Error('no')),
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const to = session.envelope.rcptTo.map(({ address }) => address)
        received.push({
          to,
          message: Buffer.concat(chunks).toString('utf8'),
          user: session.user,
          secure: session.secure,
        })
        done()
      })
    },
    ...options,
  })
  // Clients that disconnect are expected.
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  // An object for every server that listens on a port.
  const { port } = server.server.address() as AddressInfo
  const close = () => {
    for (const transport of transports.splice(0)) transport.close()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  context.after(close)
  return { port, received, close }
}

const smtp = (port: number, user = 'ada:pass%20word@', query = '?tls.rejectUnauthorized=false') =>
  configWith({
    transport: 'smtp',
    from: 'Gatehouse <no-reply@example.com>',
    smtp_url: `smtp://${user}127.0.0.1:${port}/${query}`,
  })

test('a mail is sent by SMTP over STARTTLS with the login of the URL', async (context) => {
  const { port, received } = await smtpServer(context)
  await transportOf(smtp(port)).send({ ...mail, to: 'ada@example.com' })
  assert.equal(received.length, 1)
  const [{ to, message, user, secure } = { to: [], message: '', user: '', secure: false }] = received
  assert.deepEqual([to, user, secure], [['ada@example.com'], 'ada', true])
  assert.equal(partsOf(message).get('text/plain')?.replaceAll('\r\n', '\n').trim(), mail.text.trim())
})

test('no mail is sent to a server with an untrusted certificate, a wrong login or no STARTTLS', async (context) => {
  const { port, received } = await smtpServer(context)
  await assert.rejects(transportOf(smtp(port, undefined, '')).send(mail), /certificate/)
  await assert.rejects(transportOf(smtp(port, 'ada:wrong@')).send(mail), { responseCode: 535 })
  const plain = await smtpServer(context, { disabledCommands: ['STARTTLS'], allowInsecureAuth: true })
  await assert.rejects(transportOf(smtp(plain.port, undefined, '?requireTLS=true')).send(mail), /TLS/i)
  assert.deepEqual([received, plain.received], [[], []])
})

/** Accepts STARTTLS and goes on in clear text, like an attacker on the network. */
async function lyingServer(context: TestContext) {
  const commands: string[] = []
  const answers: Readonly<Record<string, string>> = {
    EHLO: '250-mail.example.com\r\n250 AUTH PLAIN LOGIN\r\n',
    STARTTLS: '220 go ahead\r\n',
  }
  const server = createServer((socket) => {
    socket.write('220 mail.example.com ESMTP\r\n')
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      const command = /^[A-Z]+/.exec(chunk.toString('latin1'))?.[0] ?? 'bytes'
      commands.push(command)
      socket.write(answers[command] ?? '250 OK\r\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => server.close())
  // A server that listens on a port.
  return { port: (server.address() as AddressInfo).port, commands: () => commands }
}

/** Reaches the server on this machine by another address, like a remote server. */
const elsewhere = (port: number, query: string) =>
  configWith({ transport: 'smtp', smtp_url: `smtp://ada:pass%20word@0.0.0.0:${port}/${query}` })
const UNVERIFIED = 'tls.rejectUnauthorized=false'

test('a remote server gets mails and the login only over STARTTLS', async (context) => {
  const good = await smtpServer(context)
  await transportOf(elsewhere(good.port, `?${UNVERIFIED}`)).send(mail)
  assert.deepEqual(
    good.received.map(({ secure }) => secure),
    [true],
  )
  const logins: unknown[] = []
  const listening: SMTPServerOptions = {
    allowInsecureAuth: true,
    onAuth: ({ username }, _session, done) => {
      logins.push(username)
      done(null, { user: username })
    },
  }
  const stripped = await smtpServer(context, { ...listening, disabledCommands: ['STARTTLS'] })
  await assert.rejects(transportOf(elsewhere(stripped.port, `?${UNVERIFIED}`)).send(mail), /TLS/)
  assert.deepEqual([logins, stripped.received], [[], []])
  const liar = await lyingServer(context)
  await assert.rejects(transportOf(elsewhere(liar.port, `?${UNVERIFIED}`)).send(mail))
  assert.deepEqual(liar.commands().slice(0, 2), ['EHLO', 'STARTTLS'])
  assert.doesNotMatch(liar.commands().join(), /AUTH|MAIL|DATA/)
  await transportOf(elsewhere(stripped.port, '?tls=none')).send(mail)
  assert.deepEqual([logins, stripped.received.map(({ secure }) => secure)], [['ada'], [false]])
})

test('a server on this machine needs no TLS', async (context) => {
  const plain = await smtpServer(context, { disabledCommands: ['STARTTLS'], allowInsecureAuth: true })
  await transportOf(smtp(plain.port, undefined, '')).send(mail)
  assert.equal(plain.received.length, 1)
})

test('a mail waits sealed in the queue while the server is down, and is sent once when it is back', async (context) => {
  const kernel = await testKernel()
  const away = await smtpServer(context)
  await away.close()
  const queued = { ...mail, to: 'ada@example.com' }
  await sendMail(kernel, queued)

  const rows = async () =>
    (
      await sql<{ data: unknown }>`select data from service_jobs.job where name = 'send-mail'`.execute(
        kernel.db,
      )
    ).rows
  assert.doesNotMatch(JSON.stringify(await rows()), /token=abc|example\.com/)

  const handlers = (config: Config) => ({
    'send-mail': ({ mail: sealed }: { mail: string }, id: string) =>
      deliverMail(kernel, transportOf(config), { id, sealed }),
    'answer-mail-request': async () => {},
    'log-pipeline-steps': async () => {},
  })
  assert.equal(await kernel.jobs.drain(handlers(smtp(away.port))), 1)
  assert.doesNotMatch(JSON.stringify(await rows()), /token=abc/, 'nor after a failure')
  const back = await smtpServer(context)
  await sql`update service_jobs.job set start_after = now() - interval '1 second' where state = 'retry'`.execute(
    kernel.db,
  )
  assert.equal(await kernel.jobs.drain(handlers(smtp(back.port))), 1)
  assert.equal(await kernel.jobs.drain(handlers(smtp(back.port))), 0)
  assert.deepEqual(
    back.received.map(({ to }) => to),
    [['ada@example.com']],
  )
})

test('a queued mail that was sealed under another secret fails with that reason, and stays', async () => {
  const kernel = await testKernel()
  const outbox = transportOf(configWith({}))
  await assert.rejects(
    deliverMail(kernel, outbox, { id: '', sealed: 'v1.00000000.AAAA' }),
    /another SERVICE_SECRET/,
  )
})
