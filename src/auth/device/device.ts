import { act, actOnTicket } from '#identity/act.ts'
import { readInheritance, writeInheritance } from '#identity/inherited-sessions.ts'
import { getSession } from '#identity/sessions.ts'
import { tell } from '#identity/tell.ts'
import { insertTicket } from '#identity/tickets.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { Config } from '#kernel/config/config.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { authUrl } from '../auth-url.ts'
import { bySession, type Caller } from '../door/access.ts'
import type { RenewedSession } from '../door/admit.ts'
import { admitInheriting } from '../door/admit-inheriting.ts'
import { expectShown } from '../door/demands.ts'
import type { SignInContext } from '../door/sign-in-context.ts'
import { fail } from '../errors.ts'
import {
  type Device,
  type DeviceStatus,
  findDevice,
  insertDevice,
  pollDevice,
  updateStatus,
} from './store.ts'
import { newUserCode, shownUserCode, typedUserCode, userCodeHashes } from './user-code.ts'

/** A program of `auth.device.clients`. What a device says about itself counts for nothing. */
type DeviceClient = { readonly id: string; readonly name: string; readonly scope: string }

function findClient({ auth }: Config, id: string): DeviceClient | undefined {
  const { clients } = auth.device
  const found = Object.hasOwn(clients, id) ? clients[id] : undefined
  return found && { id, name: found.name ?? id, scope: found.scopes.join(' ') }
}

/** The answer of RFC 8628, 3.2. */
export type Codes = {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  readonly verification_uri_complete: string
  /** Seconds. */
  readonly expires_in: number
  /** Seconds. */
  readonly interval: number
}

/** A device asks for a session: a code for itself, and one for its user. Only hashes of them are stored. */
export async function requestCodes(kernel: Kernel, clientId: string): Promise<Codes> {
  if (findClient(kernel.config, clientId) === undefined) throw fail('INVALID_CLIENT')
  const { expires_in, interval, page_url } = kernel.config.auth.device
  const deviceCode = randomToken(kernel.random)
  const code = shownUserCode(await insertWithUserCode(kernel, deviceCode, clientId))
  const page = page_url ?? authUrl(kernel, '/device')
  const complete = new URL(page)
  complete.searchParams.set('user_code', code)
  return {
    device_code: deviceCode,
    user_code: code,
    verification_uri: page,
    verification_uri_complete: complete.href,
    expires_in: Math.floor(expires_in / 1_000),
    interval: Math.ceil(interval / 1_000),
  }
}

/** Of 20^8 codes, one that is taken is rare, and three in a row are a fault. */
const TRIES = 3

async function insertWithUserCode(kernel: Kernel, deviceCode: string, clientId: string): Promise<string> {
  const { expires_in, interval: pollInterval } = kernel.config.auth.device
  const createdAt = kernel.now()
  const expiresAt = new Date(createdAt.getTime() + expires_in)
  const device = { deviceHash: tokenHash(deviceCode), clientId, pollInterval, createdAt, expiresAt }
  for (let tries = 0; tries < TRIES; tries++) {
    const code = newUserCode(kernel.random)
    const [userCodeHash] = userCodeHashes(kernel, code)
    if (await insertDevice(kernel.db, { ...device, userCodeHash })) return code
  }
  throw new Error('the user codes of devices collide')
}

type DeviceView = {
  readonly userCode: string
  readonly status: DeviceStatus
  /** For a caller with a session, who may answer the device. */
  readonly client: DeviceClient | undefined
}

/** The device that shows this code. Looking changes nothing and binds nobody. */
export async function viewDevice(
  kernel: Kernel,
  caller: Caller | undefined,
  typed: string,
): Promise<DeviceView> {
  if (caller !== undefined) await kernel.limits.consume('user_code', caller.user.id)
  const { device, client, code } = await expectDevice(kernel, typed)
  const isOpen = caller !== undefined && device.status === 'pending'
  return { userCode: shownUserCode(code), status: device.status, client: isOpen ? client : undefined }
}

type FoundDevice = { readonly device: Device; readonly client: DeviceClient; readonly code: string }

/** Of a client that has left the settings there is no device any more. */
async function expectDevice(kernel: Kernel, typed: string): Promise<FoundDevice> {
  const code = typedUserCode(typed)
  const device = code && (await findDevice(kernel.db, userCodeHashes(kernel, code)))
  const client = device && findClient(kernel.config, device.clientId)
  if (!code || !device || !client) throw fail('INVALID_USER_CODE')
  if (device.expiresAt <= kernel.now()) throw fail('EXPIRED_USER_CODE')
  return { device, client, code }
}

/**
 * Gives the device a session of the caller's user, which it fetches with its device code. Until then the approval is a ticket that ends with
 * the caller's session, and with whatever ends the user's tickets. The session will inherit what the caller's has shown now.
 */
export async function approveDevice(kernel: Kernel, caller: Caller, typed: string): Promise<void> {
  await kernel.limits.consume('user_code', caller.user.id)
  await act(kernel, bySession(caller), async (kernel, { user }) => {
    await expectShown(kernel, caller.session, 'approveDevice')
    const { deviceHash: valueHash, clientId, expiresAt } = await answer(kernel, typed, 'approved')
    const session = await getSession(kernel.db, caller.session.id)
    await insertTicket(kernel, 'device-session', {
      ...{ valueHash, userId: user.id, sessionId: session.id, address: user.email },
      lifetime: expiresAt.getTime() - kernel.now().getTime(),
      payload: writeInheritance(session),
    })
    await tell(kernel, 'device.approved', { targetId: user.id, details: { clientId } })
  })
}

export async function denyDevice(kernel: Kernel, caller: Caller, typed: string): Promise<void> {
  await kernel.limits.consume('user_code', caller.user.id)
  await act(kernel, bySession(caller), async (kernel, { user }) => {
    const { clientId } = await answer(kernel, typed, 'denied')
    await tell(kernel, 'device.denied', { targetId: user.id, details: { clientId } })
  })
}

async function answer(kernel: Kernel, typed: string, status: 'approved' | 'denied'): Promise<Device> {
  const { device } = await expectDevice(kernel, typed)
  if (!(await updateStatus(kernel.db, device.deviceHash, status))) throw fail('DEVICE_CODE_ALREADY_PROCESSED')
  return device
}

type Poll = { readonly clientId: string; readonly deviceCode: string }

/** The session of an approved device, once. Every other state is a failure of RFC 8628, 3.5. */
export async function redeemDeviceCode(
  kernel: Kernel,
  { clientId, deviceCode: token }: Poll,
  context: SignInContext,
): Promise<RenewedSession & { readonly scope: string }> {
  const client = findClient(kernel.config, clientId)
  if (client === undefined) throw fail('INVALID_CLIENT')
  const now = kernel.now()
  const device = await pollDevice(kernel.db, { deviceHash: tokenHash(token), clientId }, now)
  if (device === undefined) throw invalid()
  if (device.expiresAt <= now) throw fail('EXPIRED_DEVICE_CODE')
  if (device.status === 'denied') throw denied()
  // An approved one too: a hook that refuses or fails would be called as often as the device likes.
  if (device.isEarly) throw fail('POLLING_TOO_FREQUENTLY')
  if (device.status === 'pending') throw fail('AUTHORIZATION_PENDING')
  const link = { purposes: ['device-session'] as const, token }
  const started = await actOnTicket(kernel, link, invalid, async (kernel, user, { payload, expired }) => {
    if (expired) throw invalid()
    const vouched = { way: 'device', inheritance: readInheritance(payload), refuse: denied } as const
    return admitInheriting(kernel, user, vouched, context)
  })
  return { ...started, scope: client.scope }
}

const invalid = () => fail('INVALID_DEVICE_CODE')
const denied = () => fail('DEVICE_DENIED')
