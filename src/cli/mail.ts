import { Command } from 'commander'
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
      const rows = mails.map(({ id, message }) => ({
        id,
        to: header(message, 'To'),
        subject: header(message, 'Subject'),
      }))
      printList(rows, ['id', 'to', 'subject'], json === true)
    })
  mail
    .command('show [id]')
    .description('print one mail unchanged; default: the newest')
    .action(async (id: string | undefined, _options, command: Command) => {
      const mails = await readOutbox(configOf(command))
      const found = id === undefined ? mails.at(-1) : mails.find((candidate) => candidate.id === id)
      if (found === undefined)
        throw new Error(id === undefined ? 'The outbox is empty.' : `There is no mail ${id}.`)
      terminal.sayRaw(found.message)
    })
  return mail
}

const header = (message: string, name: string): string =>
  new RegExp(`^${name}: (.*)$`, 'mi').exec(message)?.[1]?.trim() ?? ''
