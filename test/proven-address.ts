import type { TestService } from './harness.ts'

/** The user has proven the address. Returns the user. */
export async function proveAddress<U extends { readonly id: string }>(
  { service: { kernel } }: Pick<TestService, 'service'>,
  user: U,
): Promise<U> {
  const proof = { emailVerified: true, emailProvenAt: kernel.now() }
  await kernel.db.updateTable('user').set(proof).where('id', '=', user.id).execute()
  await kernel.coherence.settle()
  return user
}
