import type { FastifyReply, FastifyRequest } from 'fastify'
import { ownBucket, type Source } from '#identity/known-devices.ts'
import { countOpenCodes, type LinkCode } from '#identity/link-codes.ts'
import type { MailedPurpose } from '#identity/ticket-purposes.ts'
import { issueTicket, type NewTicket } from '#identity/tickets.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { browserMark, CODE_COOKIE } from '../door/cookies.ts'
import { newMailedCode, plainCode } from '../two-factor/codes.ts'

/** Milliseconds. */
export const CODE_LIFETIME = 300_000
/**
 * Open codes of an address for one purpose, so that requests to sign in hold back no reset. A known device gets one more, so that strangers
 * who ask do not keep the owner from signing in there.
 */
const MAX_OPEN = 3

/** The parts of a mail whose link works in any case. */
export const withCode = ({ auth }: Config): readonly ('link' | 'code')[] =>
  auth.email_otp.enabled ? ['link', 'code'] : ['link']

/** The browser in which a code is asked for or typed, as a ticket keeps it (`browserMark`). */
export type CodeBrowser = { readonly browser?: string | undefined }

/** The code of a mail, and its row's columns. */
type NewLinkCode = { readonly code: string; readonly columns: LinkCode }

/** As in `MailFlow`. */
type MailedTicket<P extends MailedPurpose> = {
  readonly purpose: P
  /** Milliseconds. */
  lifetime(config: Config): number
}

type Asker = CodeBrowser & { readonly source: Source; readonly userId: string | undefined }

/** A code for the address, which replaces none. Undefined when too many are open. */
export async function newLinkCode(
  kernel: Kernel,
  { purpose, address }: { readonly purpose: MailedPurpose; readonly address: string },
  asker: Asker,
): Promise<NewLinkCode | undefined> {
  if (!(await hasRoom(kernel, { purpose, address }, asker))) return undefined
  const code = newMailedCode(kernel.random)
  const [codeHash] = codeHashesOf(kernel, purpose, address, code)
  return { code, columns: { codeHash, ...columnsOf(kernel, asker) } }
}

/**
 * The row of a code that nobody gets, since the address has no account or one that takes none. Tries at it are answered as those at
 * another code, so that they do not show that, also when a link was asked for. It has the lifetime of a link, after which other rows are
 * deleted.
 */
export async function issueDecoy<P extends MailedPurpose>(
  kernel: Kernel,
  { purpose, lifetime: lifetimeOf }: MailedTicket<P>,
  { address, browser }: CodeBrowser & { readonly address: string },
): Promise<void> {
  if (!kernel.config.auth.email_otp.enabled) return
  if (!(await hasRoom(kernel, { purpose, address }, { source: {}, userId: undefined }))) return
  const code = withoutCode(kernel, columnsOf(kernel, { browser }))
  const lifetime = lifetimeOf(kernel.config)
  const ticket = { userId: null, sessionId: null, address, lifetime, payload: {}, code }
  // Without a user it is redeemed by no purpose of a user, and its token is known to no one.
  await issueTicket(kernel, purpose, ticket as unknown as NewTicket<P>)
}

/** The columns for a code that is not mailed, which nothing that is typed matches: else it could be guessed without any mail. */
export const withoutCode = ({ random }: Kernel, columns: Omit<LinkCode, 'codeHash'>): LinkCode => ({
  ...columns,
  codeHash: random(32),
})

async function hasRoom(
  kernel: Kernel,
  mailed: { readonly purpose: MailedPurpose; readonly address: string },
  { source, userId }: Asker,
): Promise<boolean> {
  const isKnown = userId !== undefined && (await ownBucket(kernel, userId, source)) !== undefined
  return (await countOpenCodes(kernel, mailed)) < MAX_OPEN + (isKnown ? 1 : 0)
}

const columnsOf = ({ now }: Kernel, { browser }: CodeBrowser) => ({
  codeExpiresAt: new Date(now().getTime() + CODE_LIFETIME),
  browser: browser ?? null,
})

/**
 * The stored forms, under the current secret and the previous one. HMAC-SHA-256, since a plain hash of six digits hides nothing; bound to
 * address and purpose, so that a copied row is worthless elsewhere.
 */
export function codeHashesOf(
  { secrets }: Kernel,
  purpose: MailedPurpose,
  address: string,
  code: string,
): readonly [current: Buffer, previous: Buffer] {
  const hashUnder = (age: 'current' | 'previous') =>
    Buffer.from(secrets.derive('link-code', `${purpose}:${address}:${plainCode(code)}`, age), 'base64url')
  return [hashUnder('current'), hashUnder('previous')]
}

/** The browser of a request that asks for a code, which gets a cookie for that if it has none. */
export function askingBrowser(
  { config, random }: Kernel,
  request: FastifyRequest,
  reply: FastifyReply,
): string {
  const cookie = CODE_COOKIE.of(request) ?? randomToken(random)
  CODE_COOKIE.set(config, reply, cookie, CODE_LIFETIME)
  return browserMark(cookie)
}
