import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'
import { isSolved } from './altcha.ts'
import { isAccepted } from './providers.ts'

type Shown = {
  /** The header that carries the solution. */
  readonly response: string | readonly string[] | undefined
  readonly address: string
}

/** Throws unless the solution is right; with `auth.captcha.provider`. Each solution passes once. */
export async function expectCaptcha(kernel: Kernel, { response, address }: Shown): Promise<void> {
  const { provider } = kernel.config.auth.captcha
  if (provider === undefined) return
  if (typeof response !== 'string' || response === '') throw fail('MISSING_RESPONSE')
  const isRight = await (provider === 'altcha'
    ? isSolved(kernel, response)
    : isAccepted(kernel, provider, { response, address }))
  if (!isRight) throw fail('VERIFICATION_FAILED')
}
