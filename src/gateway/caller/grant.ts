import type { ProvenKey } from '../keys/presented-key.ts'

/** Permissions of a request: all (admin key), the rights of its key, or only operations that need no key. */
export type Grant =
  | { readonly kind: 'admin' }
  | ({ readonly kind: 'key' } & ProvenKey)
  | { readonly kind: 'none' }
