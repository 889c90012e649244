import { Command } from 'commander'
import { describeRoutesOf } from '../describe-routes.ts'
import { configOf } from './context.ts'
import { printList, terminal } from './terminal.ts'

export function openapiCommand(): Command {
  return new Command('openapi')
    .description('print the OpenAPI document or the access table')
    .option('--access', 'print the access table: surface, method, path and access rule of each route')
    .option('--json', 'print the access table as JSON')
    .action(async ({ access, json }: { access?: boolean; json?: boolean }, command: Command) => {
      const { app, book } = await describeRoutesOf(configOf(command))
      if (access !== true) return terminal.say(JSON.stringify(app.swagger(), null, 2))
      printList([...book.entries()], ['surface', 'method', 'path', 'access'], json === true)
    })
}
