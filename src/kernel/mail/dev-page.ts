import type { Config } from '../config/config.ts'
import { type Html, html } from '../html.ts'
import type { Feature } from '../http/document/operations.ts'
import { thisMachine } from '../http/own-host.ts'
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
