import { Command } from 'commander'
import { contextOf } from './context.ts'
import { beginChecks } from './doctor-checks.ts'
import { terminal } from './terminal.ts'
import { withDatabases } from './with-kernel.ts'

export function doctorCommand(): Command {
  return new Command('doctor')
    .description(
      'check configuration, database, migrations, clock, mail, outbound rules, webhooks, keys of tokens, backups, clients, identity providers and issuers, and suggest fixes',
    )
    .option('--json', 'as JSON')
    .action(async ({ json }: { json?: boolean }, command: Command) => {
      const context = contextOf(command)
      const parts = beginChecks(context, (work) => withDatabases(context, work), false)
      const findings = (await Promise.all(parts.map(({ found }) => found))).flat()
      if (json === true) terminal.say(JSON.stringify(findings, null, 2))
      else
        for (const { subject, ok, says } of findings)
          terminal.say(`${ok ? 'ok ' : 'BAD'}  ${subject}: ${says}`)
      if (!findings.every((finding) => finding.ok)) process.exitCode = 1
    })
}
