import type { AddressInfo, Socket } from 'node:net'
import { SMTPServer } from 'smtp-server'

/** A mail server that records the recipients of mails, and can hang. */
export type MailSink = {
  readonly url: string
  /** Recipients of all delivered mails. */
  readonly recipients: ReadonlySet<string>
  /** Accepts connections and data without responding, until the returned function is called. */
  hang(): () => void
  close(): Promise<void>
}

export async function startMailSink(): Promise<MailSink> {
  const recipients = new Set<string>()
  const waiting: (() => void)[] = []
  const sockets = new Set<Socket>()
  let hangs = false
  const unlessItHangs = (go: () => void): void => {
    if (hangs) waiting.push(go)
    else go()
  }
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onConnect: (_session, done) => unlessItHangs(() => done()),
    onData(stream, session, done) {
      stream.resume().on('end', () =>
        unlessItHangs(() => {
          for (const { address } of session.envelope.rcptTo) recipients.add(address)
          done()
        }),
      )
    },
  })
  // Clients may disconnect while the server hangs.
  server.on('error', () => {})
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A server that listens on a port has an object as its address.
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    recipients,
    hang() {
      hangs = true
      return () => {
        hangs = false
        for (const go of waiting.splice(0)) go()
      }
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
