import { Command, Option } from 'commander'
import { listMembers } from '#auth/organization/member-store.ts'
import { findOrganization, searchOrganizations } from '#auth/organization/store.ts'
import { UUID } from '#kernel/random.ts'
import { count } from './option-values.ts'
import { printList, terminal } from './terminal.ts'
import { withReadOnlyKernel } from './with-kernel.ts'

export function orgsCommand(): Command {
  const orgs = new Command('orgs').description('list organizations and their members')
  orgs.addCommand(listCommand())
  orgs.addCommand(membersCommand())
  return orgs
}

type List = { search?: string; limit: number; json?: boolean | undefined }

const limitOption = (what: string) =>
  new Option('--limit <count>', `maximum number of ${what}`).default(100).argParser(count)

function listCommand(): Command {
  return new Command('list')
    .description('list organizations, newest first')
    .option('--search <text>', 'only organizations whose name or slug contains this text')
    .addOption(limitOption('organizations'))
    .option('--json', 'as JSON')
    .action(({ search, limit, json }: List, command: Command) =>
      withReadOnlyKernel(command, async ({ db }) => {
        const rows = (await searchOrganizations(db, { search, limit })).map((organization) => ({
          id: organization.id,
          slug: organization.slug,
          name: organization.name,
          members: organization.memberCount,
          two_factor: organization.requireTwoFactor ? 'required' : 'optional',
          created: organization.createdAt,
        }))
        printList(rows, ['id', 'slug', 'name', 'members', 'two_factor', 'created'], json === true)
        warnIfCut(rows, 'organizations', { limit, json })
      }),
    )
}

function membersCommand(): Command {
  return new Command('members')
    .description('list the members of an organization, in the order in which they joined')
    .argument('<organization>', 'id or slug')
    .addOption(limitOption('members'))
    .option('--json', 'as JSON')
    .action((name: string, { limit, json }: List, command: Command) =>
      withReadOnlyKernel(command, async ({ db }) => {
        const organization = await findOrganization(db, UUID.test(name) ? { id: name } : { slug: name })
        if (organization === undefined) throw new Error(`There is no organization ${name}.`)
        const rows = (await listMembers(db, organization.id, { limit })).map(
          ({ id, user, role, createdAt }) => ({
            id,
            user: user.id,
            email: user.email,
            name: user.name,
            role,
            joined: createdAt,
          }),
        )
        printList(rows, ['id', 'user', 'email', 'name', 'role', 'joined'], json === true)
        warnIfCut(rows, 'members', { limit, json })
      }),
    )
}

function warnIfCut(
  rows: readonly object[],
  what: string,
  { limit, json }: Pick<List, 'limit' | 'json'>,
): void {
  if (json !== true && rows.length === limit)
    terminal.warn(`only the first ${limit} ${what} are shown; use --limit to show more`)
}
