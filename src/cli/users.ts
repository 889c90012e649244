import { Command, Option } from 'commander'
import { banByOperator, setRoleByOperator, unbanByOperator } from '#auth/admin/operator.ts'
import { setPasswordByOperator } from '#auth/password/password.ts'
import { acceptablePassword } from '#auth/password/password-policy.ts'
import { deleteByOperator } from '#auth/profile/delete-account.ts'
import { resetFactors } from '#auth/two-factor/reset-factors.ts'
import { actAsOperator } from '#identity/act.ts'
import { addUsers } from '#identity/add-users.ts'
import { fieldsOf } from '#identity/custom-fields.ts'
import { emailFrom } from '#identity/emails.ts'
import { NAME_RULE, nameFrom } from '#identity/names.ts'
import { hashPassword } from '#identity/passwords.ts'
import { roleFrom, roleNames } from '#identity/permissions.ts'
import { tell } from '#identity/tell.ts'
import { isBanned, searchUsers } from '#identity/users.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { collected, FIELD_ARGUMENT, givenFields } from './given-fields.ts'
import { findNamedUser, generatePassword, USER_ARGUMENT } from './named-user.ts'
import { count, instant } from './option-values.ts'
import { printList, readInput, terminal } from './terminal.ts'
import { importCommand } from './users-import.ts'
import { withKernel, withReadOnlyKernel } from './with-kernel.ts'
import { WrongUsage } from './wrong-usage.ts'

export function usersCommand(): Command {
  const users = new Command('users').description(
    'create, list, ban, delete and import users, set passwords, and reset factors',
  )
  users.addCommand(createCommand())
  users.addCommand(listCommand())
  users.addCommand(banCommand())
  users.addCommand(importCommand())
  users.addCommand(resetPasswordCommand())
  users
    .command('delete')
    .argument('<user>', USER_ARGUMENT)
    .description('delete a user and all data of the account')
    .action((name: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        const user = await findNamedUser(kernel, name)
        await deleteByOperator(kernel, user.id)
        terminal.say(`${user.email} is deleted, id ${user.id}`)
      }),
    )
  users
    .command('unban')
    .argument('<user>', USER_ARGUMENT)
    .description('lift a ban')
    .action((name: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        const user = await findNamedUser(kernel, name)
        await unbanByOperator(kernel, user.id)
        terminal.say(`${user.email} may sign in again`)
      }),
    )
  users
    .command('reset-factors')
    .alias('disable-two-factor')
    .argument('<user>', USER_ARGUMENT)
    .description('remove second factor, backup codes, passkeys and trusted browsers, and end all sessions')
    .action((name: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        const user = await findNamedUser(kernel, name)
        if (!(await resetFactors(kernel, user.id)))
          throw new Error(`${user.email} has neither a second factor nor a passkey.`)
        terminal.say(`${user.email} has no second factor and no passkey, and is signed out everywhere`)
      }),
    )
  users
    .command('set-role')
    .argument('<user>', USER_ARGUMENT)
    .argument('<role>', ROLE_ARGUMENT)
    .description("change a user's role")
    .action((name: string, given: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        const role = roleOf(kernel, given)
        const user = await findNamedUser(kernel, name)
        await setRoleByOperator(kernel, user.id, role)
        terminal.say(`${user.email} has the role ${role}`)
      }),
    )
  return users
}

const ROLE_ARGUMENT = 'user, admin or a role of auth.admin.roles; several are joined by commas'

function roleOf(kernel: Kernel, given: string): string {
  const role = roleFrom(kernel, [given])
  if (role === undefined)
    throw new WrongUsage(`${given} is none of the roles ${roleNames(kernel).join(', ')}.`)
  return role
}

type Create = {
  email: string
  name: string
  role: string
  password?: string
  passwordStdin?: boolean
  field: readonly string[]
}

function createCommand(): Command {
  return new Command('create')
    .description('create a user with a verified email, for example the first admin')
    .requiredOption('--email <email>')
    .requiredOption('--name <name>')
    .option('--role <role>', ROLE_ARGUMENT, 'user')
    .option('--field <name=value>', FIELD_ARGUMENT, collected, [])
    .addOption(
      new Option('--password <password>', 'visible in the process list; prefer --password-stdin').conflicts(
        'passwordStdin',
      ),
    )
    .option('--password-stdin', 'read the password from standard input')
    .addHelpText('after', PASSWORD_HELP)
    .action((options: Create, command: Command) => {
      const person = personOf(options)
      return withKernel(command, (kernel) => create(kernel, { ...options, ...person }))
    })
}

/** Email and name as they are stored. */
function personOf(options: Create): Pick<Create, 'email' | 'name'> {
  const email = emailFrom(options.email)
  if (email === undefined) throw new WrongUsage(`${options.email} is not an email address.`)
  const name = nameFrom(options.name)
  if (name === undefined) throw new WrongUsage(`--name must be ${NAME_RULE}.`)
  return { email, name }
}

async function create(kernel: Kernel, options: Create): Promise<void> {
  const { email, name } = options
  const role = roleOf(kernel, options.role)
  const fields = givenFields(kernel, options.field)
  const given = options.passwordStdin === true ? await readInput() : options.password
  const password = await acceptablePassword(kernel, given ?? generatePassword(kernel))
  const createdAt = kernel.now()
  const id = uuidv7(createdAt, kernel.random)
  const user = {
    id,
    name,
    email,
    emailVerified: true,
    image: null,
    username: null,
    displayUsername: null,
    role,
    banned: false,
    banReason: null,
    banExpires: null,
    createdAt,
    accountId: uuidv7(createdAt, kernel.random),
    passwordHash: await hashPassword(kernel, password),
    fields,
  }
  await actAsOperator(kernel, async (kernel) => {
    const [outcome] = await addUsers(kernel, [user])
    if (outcome === 'field_taken') throw new Error('Another user has the value of a unique field.')
    if (outcome !== 'added') throw new Error(`There is an account with ${email} already.`)
    await tell(kernel, 'user.created', { targetId: id, details: { role } })
  })
  terminal.say(`created ${email}, role ${role}, id ${id}`)
  if (given === undefined) terminal.say(`password: ${password}  (shown this once)`)
}

function resetPasswordCommand(): Command {
  return new Command('reset-password')
    .description('set a new password, end all sessions and invalidate all mailed links')
    .argument('<user>', USER_ARGUMENT)
    .option('--password-stdin', 'read the password from standard input')
    .addHelpText('after', PASSWORD_HELP)
    .action((name: string, { passwordStdin }: { passwordStdin?: boolean }, command: Command) =>
      withKernel(command, async (kernel) => {
        const user = await findNamedUser(kernel, name)
        const given = passwordStdin === true ? await readInput() : undefined
        const password = given ?? generatePassword(kernel)
        await setPasswordByOperator(kernel, user.id, password)
        terminal.say(`${user.email} has a new password and is signed out everywhere`)
        if (given === undefined) terminal.say(`password: ${password}  (shown this once)`)
      }),
    )
}

const PASSWORD_HELP = '\nIf no password is given, one is generated and shown once.'

type List = { search?: string; limit: number; json?: boolean }

function listCommand(): Command {
  return new Command('list')
    .description('list users, newest first')
    .option('--search <text>', 'only users whose email, name or username contains this text')
    .addOption(new Option('--limit <count>', 'maximum number of users').default(100).argParser(count))
    .option('--json', 'as JSON')
    .action(({ search, limit, json }: List, command: Command) =>
      withReadOnlyKernel(command, async (kernel) => {
        const now = kernel.now()
        const rows = (await searchUsers(kernel.db, { search, limit })).map((user) => ({
          id: user.id,
          email: user.email,
          verified: user.emailVerified,
          name: user.name,
          username: user.username,
          role: user.role,
          banned: isBanned(user, now),
          created: user.createdAt,
          ...(json === true && fieldsOf(user)),
        }))
        const columns = ['id', 'email', 'verified', 'name', 'username', 'role', 'banned', 'created']
        printList(rows, columns, json === true)
        if (json !== true && rows.length === limit)
          terminal.warn(`only the first ${limit} users are shown; use --limit to show more`)
      }),
    )
}

function banCommand(): Command {
  return new Command('ban')
    .description('ban a user and end all sessions')
    .argument('<user>', USER_ARGUMENT)
    .option('--reason <text>')
    .addOption(
      new Option('--expires <date>', 'ISO 8601; default: until the ban is lifted').argParser(instant),
    )
    .action((name: string, { reason, expires }: { reason?: string; expires?: Date }, command: Command) =>
      withKernel(command, async (kernel) => {
        if (expires !== undefined && expires <= kernel.now())
          throw new WrongUsage(`--expires: ${expires.toISOString()} is not in the future.`)
        const until = expires ?? null
        const user = await findNamedUser(kernel, name)
        await banByOperator(kernel, user.id, { reason: reason ?? null, expires: until })
        terminal.say(`${user.email} is banned${until === null ? '' : ` until ${until.toISOString()}`}`)
      }),
    )
}
