import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { defaultConfig } from '#kernel/config/config.ts'
import { mailServerProblem } from './mail-server.ts'

const open = new Set<Socket>()
/** Takes one login, `ada:right`, and no mail. */
const server = createServer((socket) => {
  open.add(socket.on('error', () => {}))
  socket.write('220 mail.example.com\r\n')
  socket.on('data', (bytes) => {
    const line = String(bytes)
    if (line.startsWith('EHLO')) socket.write('250-mail.example.com\r\n250 AUTH PLAIN\r\n')
    else if (line.startsWith('AUTH'))
      socket.write(isRight(line) ? '235 welcome\r\n' : '535 no such login as ada:hidden\r\n')
    else socket.write('221 bye\r\n')
  })
}).listen(0, '127.0.0.1')
const isRight = (line: string) =>
  Buffer.from(line.split(' ')[2] ?? '', 'base64').toString() === '\0ada\0right'
await once(server, 'listening')
after(() => {
  server.close()
  for (const socket of open) socket.destroy()
})
const { port } = server.address() as AddressInfo // the address of a TCP server
const problemAt = (smtp_url: string) =>
  mailServerProblem(defaultConfig({ mail: { transport: 'smtp', smtp_url, from: 'auth@example.com' } }))

test('a mail server that takes the login is no problem, and an outbox has none', async () => {
  assert.equal(await problemAt(`smtp://ada:right@127.0.0.1:${port}`), undefined)
  assert.equal(await mailServerProblem(defaultConfig({})), undefined)
})

test('a problem of the mail server names its address and what to do, and repeats no login', async () => {
  for (const [url, says] of [
    [
      `smtp://ada:hidden@127.0.0.1:${port}`,
      `127.0.0.1:${port} refuses the login: check user and password, with @ / ? # : in them percent-encoded`,
    ],
    [
      `smtps://ada:hidden@127.0.0.1:${port}`,
      `127.0.0.1:${port} has no TLS that can be trusted: check port and scheme, or name the authority of its certificate in NODE_EXTRA_CA_CERTS`,
    ],
    [
      'smtp://ada:hidden@127.0.0.1:1',
      '127.0.0.1:1 does not answer as a mail server does (ECONNREFUSED): start it, or check host, port and firewall',
    ],
  ])
    assert.equal(await problemAt(url ?? ''), `mail.smtp_url: ${says}`)
})
