import type { ProvenKey } from './keys/presented-key.ts'

/** What a request may do: all (the admin key), what its key's rights say, or what needs no key. */
export type Grant =
  | { readonly kind: 'admin' }
  | ({ readonly kind: 'key' } & ProvenKey)
  | { readonly kind: 'none' }
