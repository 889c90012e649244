import { PASSWORD_MAX } from '#identity/passwords.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from './errors.ts'

/** The password, if the policy takes it. */
export async function acceptablePassword({ config }: Kernel, password: string): Promise<string> {
  const length = [...password.normalize('NFKC')].length
  const { password_min_length } = config.auth.email_password
  if (length < password_min_length) {
    throw fail('PASSWORD_TOO_SHORT', {
      message: `The password needs at least ${password_min_length} characters`,
    })
  }
  if (length > PASSWORD_MAX) throw fail('PASSWORD_TOO_LONG')
  return password
}
