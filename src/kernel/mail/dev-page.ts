import type { FastifyRequest } from 'fastify'
import type { Config } from '../config/config.ts'
import { type Html, html } from '../html.ts'
import type { Access } from '../http/access.ts'
import type { Feature } from '../http/document/operations.ts'
import { edge } from '../http/failures.ts'
import { sendPage } from '../http/page.ts'
import type { App } from '../http/surface.ts'
import type { Kernel } from '../kernel.ts'
import { linkedText, type ReadMail, readMessage } from './read-message.ts'
import { readOutbox } from './transports.ts'

export const DEV_MAIL: Feature = { name: 'development', description: 'Pages for development' }

/** The newest mails that the page shows. */
const SHOWN = 50

/** Mails contain links that sign in, so the page exists only where they go to no one: in development, with transport outbox. */
export const hasDevMail = ({ production, mail }: Config): boolean =>
  !production && mail.transport === 'outbox'

export function devMailRoutes(app: App, kernel: Kernel): void {
  app.route({
    method: 'GET',
    url: '/dev/mail',
    config: { access: thisMachine(kernel) },
    handler: async (_request, reply) => {
      const messages = (await readOutbox(kernel.config)).slice(-SHOWN).reverse()
      const mails = await Promise.all(messages.map(({ message }) => readMessage(message)))
      return sendPage(kernel, reply, {
        title: 'Outbox',
        content: mails.length === 0 ? [EMPTY] : mails.map(shown),
      })
    },
  })
}

const EMPTY = html`<p>No mail yet. Sign up or ask for a password reset, then reload this page.</p>`

const shown = ({ to, subject, date, text }: ReadMail): Html => html`<article>
<h2>${subject}</h2>
<p class="soft">To ${to} · ${date}</p>
<pre>${linkedText(text)}</pre>
</article>`

/**
 * Callers on this machine, by an address of it. The Host header excludes a page whose name resolves to 127.0.0.1 only after it was loaded
 * (DNS rebinding), and a forwarded request comes from elsewhere.
 */
function thisMachine(kernel: Kernel): Access {
  return {
    name: 'open (callers on this machine)',
    security: [],
    failures: ['misdirected_request'],
    authorize({ headers, clientAddress }: FastifyRequest) {
      const isForwarded = headers.forwarded !== undefined || headers['x-forwarded-for'] !== undefined
      if (isForwarded || !isLoopback(clientAddress) || !isOwnHost(kernel, headers.host ?? ''))
        throw edge('misdirected_request')
    },
  }
}

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'

/** Whether it names the host of `server.public_url`, localhost or a loopback address. */
function isOwnHost({ publicUrl }: Kernel, host: string): boolean {
  const name = URL.parse(`http://${host}`)?.hostname
  if (name === undefined) return false
  return (
    name === new URL(publicUrl()).hostname ||
    name === 'localhost' ||
    name === '[::1]' ||
    /^127(\.\d+){3}$/.test(name)
  )
}
