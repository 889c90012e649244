import { stateAgain } from '#identity/proof.ts'
import { tokenHash } from '#identity/tokens.ts'
import { isBanned, type User } from '#identity/users.ts'
import { atomically, type Kernel } from '#kernel/kernel.ts'
import { mailLink } from '../mail-links.ts'

/** What a ticket keeps of the cookie that marks a browser. */
export const browserMark = (cookie: string): string => tokenHash(cookie).toString('base64url')

type Mark = { readonly callbackURL?: string | undefined; readonly browser?: string | undefined }

/** Mails a link that proves the address. `browser` is the hash of a cookie that only the browser has which has just shown the password. */
export async function sendVerificationMail(kernel: Kernel, user: User, more: Mark = {}): Promise<void> {
  const { id: userId, email: address } = user
  await atomically(kernel, async (kernel) => {
    const still = await stateAgain(kernel, { userId })
    if (still?.email !== address || still.emailVerified || isBanned(still, kernel.now())) return
    await mailLink(kernel, 'verify-email', still, {
      // A link of sign-up or sign-in outlives the session that begins there: the mail may be read on another device.
      sessionId: null,
      address,
      payload: more.browser === undefined ? {} : { browser: more.browser },
      callbackURL: more.callbackURL,
    })
  })
}
