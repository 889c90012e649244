import { PASSWORD_MAX } from '#identity/passwords.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { expectNoBreach } from './breached-passwords.ts'

/** The password, if the policy accepts it; throws otherwise. */
export async function acceptablePassword(kernel: Kernel, password: string): Promise<string> {
  const normal = password.normalize('NFKC')
  const length = [...normal].length
  const { password_min_length, refuse_common } = kernel.config.auth.email_password
  if (length < password_min_length) {
    throw fail('PASSWORD_TOO_SHORT', {
      message: `The password needs at least ${password_min_length} characters`,
    })
  }
  if (length > PASSWORD_MAX) throw fail('PASSWORD_TOO_LONG')
  if (refuse_common && (await isCommon(normal))) throw fail('PASSWORD_COMMON')
  await expectNoBreach(kernel, normal)
  return password
}

async function isCommon(password: string): Promise<boolean> {
  const { WELL_KNOWN_PASSWORDS } = await import('./well-known-passwords.ts')
  return WELL_KNOWN_PASSWORDS.has(password.toLowerCase())
}
