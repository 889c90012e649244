import type { SealPurpose, Secrets } from '#kernel/secrets.ts'

/** A value as former versions sealed it: without an owner. */
export const sealUnbound = ({ seal }: Secrets, purpose: SealPurpose, plain: string): string =>
  // The type forbids it, and `openUnbound` is there for such values.
  (seal as (purpose: SealPurpose, plain: string, owner: null) => string)(purpose, plain, null)
