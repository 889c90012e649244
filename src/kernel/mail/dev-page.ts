import { Type } from 'typebox'
import type { Config } from '../config/config.ts'
import { type Html, html } from '../html.ts'
import { named } from '../http/document/components.ts'
import type { Feature } from '../http/document/operations.ts'
import { edge } from '../http/failures.ts'
import { thisMachine } from '../http/own-host.ts'
import { sendPage } from '../http/page.ts'
import { Nullable } from '../http/schemas.ts'
import type { App } from '../http/surface.ts'
import type { Kernel } from '../kernel.ts'
import { linkedText, type ReadMail, readMessage } from './read-message.ts'
import { readOutbox } from './transports.ts'

export const DEV_MAIL: Feature = {
  name: 'development',
  description: 'Mails and webhooks of development, for callers on this machine',
}

/** The newest mails that the page shows. */
const SHOWN = 50

/** Mails contain links that sign in, so the page exists only where they go to no one: in development, with transport outbox. */
export const hasDevMail = ({ production, mail }: Config): boolean =>
  !production && mail.transport === 'outbox'

const FIELDS = {
  id: Type.String(),
  to: Type.String(),
  from: Type.String(),
  subject: Type.String(),
  date: Type.String({ description: 'ISO 8601; empty without one' }),
}
const ListedMail = Type.Object(FIELDS, named('ListedMail'))
const OutboxMail = Type.Object(
  {
    ...FIELDS,
    text: Type.String(),
    html: Nullable(Type.String({ description: 'The source of the part in HTML' })),
  },
  named('OutboxMail'),
)

export function devMailRoutes(app: App, kernel: Kernel): void {
  const access = thisMachine(kernel)
  app.route({
    method: 'GET',
    url: '/dev/mails',
    config: { access },
    schema: {
      operationId: 'listOutboxMails',
      summary: 'List the mails of the outbox, newest first',
      description: `The newest ${SHOWN}. Only in development, while mail.transport is outbox.`,
      response: { 200: Type.Object({ mails: Type.Array(ListedMail) }) },
    },
    handler: async () => ({ mails: await newest(kernel.config) }),
  })
  app.route({
    method: 'GET',
    url: '/dev/mails/:id',
    config: { access, failures: ['not_found'] },
    schema: {
      operationId: 'getOutboxMail',
      summary: 'A mail of the outbox, with its texts',
      params: Type.Object({
        id: Type.String({
          minLength: 1,
          maxLength: 255,
          examples: ['01a1fed6-8936-7ac3-bdf5-1fc3f49efcc6'],
        }),
      }),
      response: { 200: OutboxMail },
    },
    handler: async ({ params: { id } }) => {
      const found = (await readOutbox(kernel.config)).find((mail) => mail.id === id)
      if (found === undefined)
        throw edge('not_found', { hint: 'The outbox has no such mail; it may have been deleted' })
      const { html = null, ...mail } = await readMessage(found.message)
      return { id, ...mail, html }
    },
  })
  app.route({
    method: 'GET',
    url: '/dev/mail',
    config: { access },
    handler: async (_request, reply) => {
      const mails = await newest(kernel.config)
      return sendPage(kernel, reply, {
        title: 'Outbox',
        content: mails.length === 0 ? [EMPTY] : mails.map(shown),
      })
    },
  })
}

const newest = async (config: Config) =>
  Promise.all(
    (await readOutbox(config))
      .slice(-SHOWN)
      .reverse()
      .map(async ({ id, message }) => ({ id, ...(await readMessage(message)) })),
  )

const EMPTY = html`<p>No mail yet. Sign up or ask for a password reset, then reload this page.</p>`

const shown = ({ to, subject, date, text }: ReadMail): Html => html`<article>
<h2>${subject}</h2>
<p class="soft">To ${to} · ${date}</p>
<pre>${linkedText(text)}</pre>
</article>`
