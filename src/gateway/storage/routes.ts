import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { named } from '#kernel/http/document/components.ts'
import { Nullable, Timestamp } from '#kernel/http/schemas.ts'
import type { App } from '#kernel/http/surface.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { GatewayAccess } from '../caller/access.ts'
import { actorOf, grantOf } from '../caller/caller.ts'
import { presenceOf } from '../caller/presence.ts'
import { success, successOf } from '../envelope.ts'
import { STORAGE_FAILURES } from './failures.ts'
import { deleteObject, findObject, listObjects } from './objects.ts'
import { createS3Calls, type StorageCaller } from './s3-call.ts'
import { signDownload, signUpload } from './signed-urls.ts'

/** Of a header value: printable ASCII without spaces. */
const TOKEN = '^[!-~]+$'
/**
 * Names of buckets by Amazon's rules for general purpose buckets: also without the suffixes of access points and other
 * kinds of buckets, which the SDK would send elsewhere.
 */
const BUCKET =
  '^(?!xn--|sthree-|amzn-s3-demo-)(?!.*\\.\\.)(?!\\d+\\.\\d+\\.\\d+\\.\\d+$)(?!.*(?:-s3alias|--ol-s3|\\.mrap|--x-s3|--table-s3)$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$'

const SERVER = {
  endpoint: Type.String({
    minLength: 1,
    maxLength: 500,
    description: 'URL or host of an S3-compatible server',
    examples: ['https://s3.example'],
  }),
  region: Type.String({
    pattern: '^[A-Za-z0-9-]{1,63}$',
    description: 'Letters, digits and -, at most 63',
    examples: ['eu-central-1'],
  }),
  access_key_id: Type.String({
    maxLength: 128,
    pattern: TOKEN,
    description: 'Printable ASCII without spaces',
    examples: ['AKIAIOSFODNN7EXAMPLE'],
  }),
  secret_key: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'Used for this call only, never stored or logged',
    examples: ['the secret of the access key'],
  }),
  session_token: Type.Optional(
    Type.String({
      maxLength: 4_096,
      pattern: TOKEN,
      description: 'Of temporary credentials: printable ASCII without spaces',
    }),
  ),
  bucket: Type.String({
    maxLength: 63,
    pattern: BUCKET,
    description:
      'As Amazon names buckets: 3 to 63 lower-case letters, digits, - and ., no address and no reserved prefix or suffix',
    examples: ['reports'],
  }),
}
const Text = (more: object) => Type.Optional(Type.String({ maxLength: 1_024, ...more }))
const ListBody = Type.Object({
  ...SERVER,
  prefix: Text({ description: 'Only keys that begin with it', examples: ['2026/'] }),
  delimiter: Text({
    description: 'Keys that have it after the prefix are grouped as common_prefixes',
    examples: ['/'],
  }),
  continuation_token: Text({ description: 'next_continuation_token of the page before' }),
  max_keys: Type.Optional(
    Type.Integer({
      minimum: -(2 ** 31),
      maximum: 2 ** 31 - 1,
      default: 200,
      description: 'A value out of 1 to 1,000 is taken as the nearest of these',
    }),
  ),
})
const OBJECT = {
  ...SERVER,
  key: Type.String({ minLength: 1, maxLength: 1_024, examples: ['2026/11/report.pdf'] }),
}
const ObjectBody = Type.Object(OBJECT)
const SIGNING = {
  ...OBJECT,
  expires_in: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 604_800, default: 900, description: 'Seconds' }),
  ),
}
const DownloadBody = Type.Object(SIGNING)
const UploadBody = Type.Object({
  ...SIGNING,
  content_type: Type.Optional(
    Type.String({
      maxLength: 200,
      pattern: '^[!-~]+/[ -~]+$',
      description: 'A type like text/plain; the upload has to send exactly this Content-Type',
      examples: ['application/pdf'],
    }),
  ),
})

const FACTS = {
  size: Type.Number({ description: 'Bytes' }),
  last_modified: Nullable(Timestamp),
  etag: Nullable(Type.String()),
  storage_class: Nullable(Type.String()),
}
const Listed = Type.Object(
  {
    bucket: Type.String(),
    prefix: Type.String(),
    delimiter: Nullable(Type.String()),
    objects: Type.Array(Type.Object({ key: Type.String(), ...FACTS }, named('ListedObject'))),
    common_prefixes: Type.Array(Type.String()),
    key_count: Type.Integer({ description: 'Objects and common prefixes of this page' }),
    is_truncated: Type.Boolean(),
    next_continuation_token: Nullable(Type.String()),
  },
  named('ListedObjects'),
)
const Found = Type.Object(
  {
    bucket: Type.String(),
    key: Type.String(),
    ...FACTS,
    content_type: Nullable(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
  },
  named('StoredObject'),
)
const SIGNED = { url: Type.String(), method: Type.String(), expires_at: Timestamp }
const SignedDownload = Type.Object(SIGNED, named('SignedDownload'))
const SignedUpload = Type.Object(
  {
    ...SIGNED,
    headers: Type.Record(Type.String(), Type.String(), { description: 'To be sent with the upload' }),
  },
  named('SignedUpload'),
)
const Deleted = Type.Object({ bucket: Type.String(), key: Type.String() })

export function storageRoutes(app: App, kernel: Kernel, access: GatewayAccess): void {
  const config = { access: access.keyed('gateway.storage_proxy'), failures: Object.keys(STORAGE_FAILURES) }
  const calls = createS3Calls(kernel)
  app.addHook('onClose', calls.close)
  app.route({
    method: 'POST',
    url: '/storage/objects',
    config,
    schema: {
      operationId: 'listObjects',
      summary: 'List the objects of a bucket, a page at a time',
      body: ListBody,
      response: { 200: successOf(Listed) },
    },
    handler: async (request, reply) => {
      const listed = await listObjects(calls, request.body, storageCaller(request, reply))
      return success(`Listed ${listed.objects.length} objects`, listed)
    },
  })
  app.route({
    method: 'POST',
    url: '/storage/objects/head',
    config,
    schema: {
      operationId: 'findObject',
      summary: 'Size, type and metadata of an object',
      body: ObjectBody,
      response: { 200: successOf(Found) },
    },
    handler: async (request, reply) =>
      success('Found', await findObject(calls, request.body, storageCaller(request, reply))),
  })
  app.route({
    method: 'POST',
    url: '/storage/objects/url',
    config,
    schema: {
      operationId: 'signDownload',
      summary: 'Make a signed URL that reads an object',
      body: DownloadBody,
      response: { 200: successOf(SignedDownload) },
    },
    handler: async (request, reply) =>
      success('Signed', await signDownload(kernel, calls, request.body, storageCaller(request, reply))),
  })
  app.route({
    method: 'POST',
    url: '/storage/objects/upload-url',
    config,
    schema: {
      operationId: 'signUpload',
      summary: 'Make a signed URL that writes an object',
      body: UploadBody,
      response: { 200: successOf(SignedUpload) },
    },
    handler: async (request, reply) =>
      success('Signed', await signUpload(kernel, calls, request.body, storageCaller(request, reply))),
  })
  app.route({
    method: 'POST',
    url: '/storage/objects/delete',
    config,
    schema: {
      operationId: 'deleteObject',
      summary: 'Delete an object',
      body: ObjectBody,
      response: { 200: successOf(Deleted) },
    },
    handler: async (request, reply) =>
      success('Deleted', await deleteObject(calls, request.body, storageCaller(request, reply))),
  })
}

const storageCaller = (request: FastifyRequest, reply: FastifyReply): StorageCaller => ({
  presence: presenceOf(reply),
  payer: actorOf(grantOf(request)),
})
