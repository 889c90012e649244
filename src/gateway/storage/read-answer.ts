import { S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { type Asked, type SdkResult, type ServerAnswer, TOO_LARGE } from './sdk-jobs.ts'
import { FIXED } from './sdk-settings.ts'
import { send } from './sign.ts'

/** Reads an answer with the SDK. Whatever the SDK throws that is no code of the server is an error of its parser. */
export async function readAnswer(asked: Asked, received: ServerAnswer): Promise<SdkResult> {
  const { status } = received
  const reason = unusable(asked, received)
  if (reason !== undefined) return { kind: 'unusable', reason }
  try {
    const { $metadata: _, ...output } = { $metadata: undefined, ...(await send(answeredBy(received), asked)) }
    return { kind: 'output', output }
  } catch (error) {
    if (status < 300) return { kind: 'unusable', reason: 'Its answer cannot be read: check endpoint' }
    return { kind: 'refused', code: codeOf(error) }
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof S3ServiceException && !NO_CODES.has(error.name) && /^[A-Za-z]{1,64}$/.test(error.name)
    ? error.name
    : undefined

/** Names by the SDK for an answer without a code of S3. */
const NO_CODES: ReadonlySet<string> = new Set(['Error', 'Unknown', 'UnknownError'])

/** A client whose requests all have this answer. */
const answeredBy = ({ status: statusCode, headers, body }: ServerAnswer): S3Client =>
  new S3Client({
    ...FIXED,
    endpoint: 'http://localhost',
    region: 'none',
    credentials: { accessKeyId: 'none', secretAccessKey: 'none' },
    requestHandler: {
      handle: async () => ({ response: { statusCode, headers, body } }),
      updateHttpClientConfig: () => {},
      httpHandlerConfigs: () => ({}),
    },
  })

/**
 * The SDK's parser and the answer made from it take more time for tags than for text: 0.4 MB of empty tags would be an answer of 3 MB. The time
 * also grows with the square of the number of document types, which no storage server sends (@aws-sdk/xml-builder 3.972, `isNext`).
 */
function unusable({ operation }: Asked, { status, body, maxTags }: ServerAnswer): string | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (status >= 300 && bytes.length > MAX_ERROR)
    return 'Its error is larger than any of a storage server: check endpoint'
  if (count(bytes, '<', maxTags) > maxTags || count(bytes, '=', MAX_EQUALS) > MAX_EQUALS) return TOO_LARGE
  const text = bytes.toString('latin1')
  if (/<!doctype/i.test(text)) return 'Its answer has a document type, which no storage server sends'
  if (status >= 300) return undefined
  if (operation === 'list' && rootOf(text) !== 'ListBucketResult')
    return 'Its answer is no list of objects: check endpoint'
  if (operation === 'delete' && text !== '') return 'Its answer is none of a storage server: check endpoint'
  return undefined
}

/** Bytes of an answer that is no success. */
const MAX_ERROR = 65_536

/** Each attribute has one, and so may a key and a checksum: a hundred thousand attributes took a second. */
const MAX_EQUALS = 20_000

/** Counts no further than one beyond `max`. */
function count(body: Buffer, character: string, max: number): number {
  let found = 0
  for (let at = body.indexOf(character); at !== -1 && found <= max; at = body.indexOf(character, at + 1))
    found++
  return found
}

/** The name of the first element, after the declaration and comments. The SDK reads any other root as an answer without members. */
function rootOf(text: string): string | undefined {
  let at = text.indexOf('<')
  while (text.startsWith('<?', at) || text.startsWith('<!--', at)) {
    const end = text.startsWith('<?', at) ? '?>' : '-->'
    const after = text.indexOf(end, at)
    at = after === -1 ? -1 : text.indexOf('<', after)
    if (at === -1) return undefined
  }
  return at === -1 ? undefined : /^[\w:.-]*/.exec(text.slice(at + 1, at + 101))?.[0]
}
