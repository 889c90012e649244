import { Command } from 'commander'
import { readMessage } from '#kernel/mail/read-message.ts'
import { readOutbox } from '#kernel/mail/transports.ts'
import { configOf } from './context.ts'
import { printList, terminal } from './terminal.ts'

export function mailCommand(): Command {
  const mail = new Command('mail').description('read the mails that the outbox transport has written')
  mail
    .command('list')
    .description('list the mails in the outbox, oldest first')
    .option('--json', 'as JSON')
    .action(async ({ json }: { json?: boolean }, command: Command) => {
      const mails = await readOutbox(configOf(command))
      const rows = await Promise.all(
        mails.map(async ({ id, message }) => {
          const { to, subject } = await readMessage(message)
          return { id, to, subject }
        }),
      )
      printList(rows, ['id', 'to', 'subject'], json === true)
    })
  mail
    .command('show [id]')
    .description('print one mail as text; default: the newest')
    .option('--raw', 'print its file unchanged, with all parts')
    .action(async (id: string | undefined, { raw }: { raw?: boolean }, command: Command) => {
      const mails = await readOutbox(configOf(command))
      const found = id === undefined ? mails.at(-1) : mails.find((candidate) => candidate.id === id)
      if (found === undefined)
        throw new Error(id === undefined ? 'The outbox is empty.' : `There is no mail ${id}.`)
      if (raw === true) return terminal.sayRaw(found.message)
      const { to, from, subject, date, text } = await readMessage(found.message)
      terminal.sayRaw(`To: ${to}\nFrom: ${from}\nSubject: ${subject}\nDate: ${date}\n\n${text}`)
    })
  return mail
}
