import type {
  DeleteObjectCommandInput,
  DeleteObjectCommandOutput,
  GetObjectCommandInput,
  HeadObjectCommandInput,
  HeadObjectCommandOutput,
  ListObjectsV2CommandInput,
  ListObjectsV2CommandOutput,
  PutObjectCommandInput,
} from '@aws-sdk/client-s3'

/** An S3-compatible server and the caller's credentials for it. They are used for one call only. */
export type StorageServer = {
  /** The address without user, query and fragment. */
  readonly endpoint: string
  readonly region: string
  readonly access_key_id: string
  readonly secret_key: string
  readonly session_token?: string | undefined
}

/** A request to a server. */
export type Asked =
  | { readonly operation: 'list'; readonly input: ListObjectsV2CommandInput }
  | { readonly operation: 'head'; readonly input: HeadObjectCommandInput }
  | { readonly operation: 'delete'; readonly input: DeleteObjectCommandInput }

export type OutputOf = {
  readonly list: ListObjectsV2CommandOutput
  readonly head: HeadObjectCommandOutput
  readonly delete: DeleteObjectCommandOutput
}

/** A URL by which anyone can do this without credentials. */
export type AskedUrl = (
  | { readonly operation: 'get'; readonly input: GetObjectCommandInput }
  | { readonly operation: 'put'; readonly input: PutObjectCommandInput }
) & { readonly expiresIn: number; readonly signingDate: Date }

export type SignedCall = {
  readonly method: 'GET' | 'HEAD' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** The answer of a server, as it came. */
export type ServerAnswer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** Most tags in it. */
  readonly maxTags: number
}

/** The work that the SDK does in a thread of its own, which has no network. */
export type SdkJob =
  | { readonly kind: 'sign'; readonly server: StorageServer; readonly asked: Asked }
  | { readonly kind: 'sign-url'; readonly server: StorageServer; readonly asked: AskedUrl }
  | { readonly kind: 'read'; readonly asked: Asked; readonly received: ServerAnswer }

export type SdkResult =
  | { readonly kind: 'signed'; readonly signed: SignedCall }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'output'; readonly output: object }
  /** The server's failure, with its code if it gave one. */
  | { readonly kind: 'refused'; readonly code: string | undefined }
  /** The answer is not one of a storage server. The reason is for the caller. */
  | { readonly kind: 'unusable'; readonly reason: string }
  | { readonly kind: 'failed'; readonly message: string }

export const TOO_LARGE = 'Its answer is too large; ask for fewer keys with max_keys'
