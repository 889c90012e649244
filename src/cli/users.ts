import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { acceptablePassword } from '#auth/policy.ts'
import { addUsers } from '#identity/add-users.ts'
import { banUser, unbanUser } from '#identity/bans.ts'
import { emailFrom } from '#identity/emails.ts'
import { NAME_RULE, nameFrom } from '#identity/names.ts'
import { hashPassword } from '#identity/passwords.ts'
import { ROLES, type Role, setRole } from '#identity/roles.ts'
import { usernameFrom } from '#identity/usernames.ts'
import { findUser, findUserWithPassword, isBanned, searchUsers, type User } from '#identity/users.ts'
import { type Kernel, tell } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { printList, readInput, terminal } from './terminal.ts'
import { importCommand } from './users-import.ts'
import { withKernel, withReading } from './with-kernel.ts'

export function usersCommand(): Command {
  const users = new Command('users').description('create, list, ban and import users')
  users.addCommand(createCommand())
  users.addCommand(listCommand())
  users.addCommand(banCommand())
  users.addCommand(importCommand())
  users
    .command('unban')
    .argument('<user>', WHO)
    .description('lift a ban')
    .action((name: string, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        const user = await existing(kernel, name)
        await unbanUser(kernel, user.id)
        terminal.say(`${user.email} may sign in again`)
      }),
    )
  users
    .command('set-role')
    .argument('<user>', WHO)
    .addArgument(new Argument('<role>').choices(ROLES))
    .description('give a user another role')
    .action((name: string, role: Role, _options, command: Command) =>
      withKernel(command, async (kernel) => {
        const user = await existing(kernel, name)
        await setRole(kernel, user.id, role)
        terminal.say(`${user.email} has the role ${role}`)
      }),
    )
  return users
}

const WHO = 'id, email or username'

type Create = { email: string; name: string; role: Role; password?: string; passwordStdin?: boolean }

function createCommand(): Command {
  return new Command('create')
    .description('create a user whose email counts as verified; the first admin, for one')
    .requiredOption('--email <email>')
    .requiredOption('--name <name>')
    .addOption(new Option('--role <role>').choices(ROLES).default('user'))
    .addOption(
      new Option(
        '--password <password>',
        'stands in the list of processes; better --password-stdin',
      ).conflicts('passwordStdin'),
    )
    .option('--password-stdin', 'read the password from standard input')
    .addHelpText('after', '\nWithout a password one is made up and shown, this once.')
    .action((options: Create, command: Command) => withKernel(command, (kernel) => create(kernel, options)))
}

async function create(kernel: Kernel, { role, ...options }: Create): Promise<void> {
  const email = emailFrom(options.email)
  if (email === undefined) throw new Error(`${options.email} is not an email address.`)
  const name = nameFrom(options.name)
  if (name === undefined) throw new Error(`--name must be ${NAME_RULE}.`)
  const given = options.passwordStdin === true ? await readInput() : options.password
  const password = await acceptablePassword(kernel, given ?? madeUp(kernel))
  const createdAt = kernel.now()
  const id = uuidv7(createdAt, kernel.random)
  const [outcome] = await addUsers(kernel.db, [
    {
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
    },
  ])
  if (outcome !== 'added') throw new Error(`There is an account with ${email} already.`)
  tell(kernel, 'auth_user_created', { userId: id })
  terminal.say(`created ${email}, role ${role}, id ${id}`)
  if (given === undefined) terminal.say(`password: ${password}  (shown this once)`)
}

/** 20 characters, 120 bits; longer where the policy wants it. */
function madeUp({ config, random }: Kernel): string {
  const characters = Math.max(20, config.auth.email_password.password_min_length)
  return random(Math.ceil((characters * 3) / 4)).toString('base64url')
}

type List = { search?: string; limit: number; json?: boolean }

function listCommand(): Command {
  return new Command('list')
    .description('users, the newest first')
    .option('--search <text>', 'only those whose email, name or username contains this')
    .addOption(new Option('--limit <count>', 'at most so many').default(100).argParser(count))
    .option('--json', 'as JSON')
    .action(({ search, limit, json }: List, command: Command) =>
      withReading(command, async (kernel) => {
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
        }))
        const columns = ['id', 'email', 'verified', 'name', 'username', 'role', 'banned', 'created']
        printList(rows, columns, json === true)
        if (json !== true && rows.length === limit)
          terminal.warn(`only ${limit} are shown; --limit shows more`)
      }),
    )
}

function count(text: string): number {
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}

function banCommand(): Command {
  return new Command('ban')
    .description('keep a user out, and end every session')
    .argument('<user>', WHO)
    .option('--reason <text>')
    .option('--expires <date>', 'ISO 8601; until it is lifted, if absent')
    .action((name: string, { reason, expires }: { reason?: string; expires?: string }, command: Command) =>
      withKernel(command, async (kernel) => {
        const until = expires === undefined ? null : new Date(expires)
        if (until !== null && !(until > kernel.now())) throw new Error(`${expires} is no date in the future.`)
        const user = await existing(kernel, name)
        await banUser(kernel, user.id, { reason: reason ?? null, expires: until })
        terminal.say(`${user.email} is banned${until === null ? '' : ` until ${until.toISOString()}`}`)
      }),
    )
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

async function existing(kernel: Kernel, name: string): Promise<User> {
  const email = emailFrom(name)
  const found = UUID.test(name)
    ? await findUser(kernel.db, 'id', name)
    : email !== undefined
      ? await findUser(kernel.db, 'email', email)
      : await findUserWithPassword(kernel, 'username', usernameFrom(name)?.username ?? name)
  if (found === undefined) throw new Error(`There is no user ${name}.`)
  return found
}
