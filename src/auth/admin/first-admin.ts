import { actAsOperator } from '#identity/act.ts'
import { addUsers } from '#identity/add-users.ts'
import { isFirstAdminOffered, redeemFirstAdmin } from '#identity/first-admin.ts'
import { hashPassword } from '#identity/passwords.ts'
import { tell } from '#identity/tell.ts'
import { actingAsUser, type Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { newUser } from '../door/add-user.ts'
import { fail } from '../errors.ts'
import { acceptablePassword } from '../password/password-policy.ts'

type FirstAdmin = {
  readonly token: string
  readonly name: string
  readonly email: string
  readonly password: string
}

/**
 * Makes the bearer of the link that the start has printed the first admin, as `gatehouse users create --role admin` does. A link that is used,
 * expired or unknown fails alike, and so does every link once there is an admin.
 */
export async function createFirstAdmin(kernel: Kernel, asked: FirstAdmin): Promise<{ readonly id: string }> {
  const refuse = () => fail('INVALID_TOKEN')
  // A stranger costs no hash.
  if (!(await isFirstAdminOffered(kernel, asked.token))) throw refuse()
  const { id, name, email, image, username, displayUsername, createdAt, fields } = newUser(
    kernel,
    { name: asked.name, email: asked.email },
    'operator',
  )
  const password = await acceptablePassword(kernel, asked.password)
  const user = {
    ...{ id, name, email, image, username, displayUsername, createdAt, emailVerified: true, role: ROLE },
    ...{ banned: false, banReason: null, banExpires: null, fields: fields ?? null },
    accountId: uuidv7(createdAt, kernel.random),
    passwordHash: await hashPassword(kernel, password),
  }
  await actAsOperator(actingAsUser(kernel, id), async (kernel) => {
    if (!(await redeemFirstAdmin(kernel, asked.token))) throw refuse()
    const [outcome] = await addUsers(kernel, [user])
    if (outcome !== 'added') throw fail('USER_ALREADY_EXISTS')
    await tell(kernel, 'user.created', { targetId: id, details: { role: ROLE } })
  })
  return { id }
}

const ROLE = 'admin'
