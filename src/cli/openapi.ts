import { Command } from 'commander'
import { startService } from '../app.ts'
import { contextOf } from './context.ts'
import { printList, terminal } from './terminal.ts'
import { withDatabases } from './with-kernel.ts'

export function openapiCommand(): Command {
  return new Command('openapi')
    .description('print the OpenAPI document or the access table')
    .option('--access', 'print the access table: surface, method, path and access rule of each route')
    .option('--json', 'print the access table as JSON')
    .action(async ({ access, json }: { access?: boolean; json?: boolean }, command: Command) => {
      const context = contextOf(command)
      await withDatabases(context, async (databases) => {
        const service = await startService({ ...context, databases, adminKey: '' })
        try {
          if (access !== true) return terminal.say(JSON.stringify(service.app.swagger(), null, 2))
          printList([...service.book.entries()], ['surface', 'method', 'path', 'access'], json === true)
        } finally {
          await service.stop()
        }
      })
    })
}
