import { createPrivateKey, type KeyObject } from 'node:crypto'
import { actAsOperator } from '#identity/act.ts'
import { tell, untold } from '#identity/tell.ts'
import type { Db } from '#kernel/db/connect.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { generateKey } from './jws.ts'
import {
  deleteRetiredJwtKeys,
  insertJwtKey,
  type JwtKey,
  type JwtKeyState,
  listJwtKeys,
  lockJwtKeys,
  resealJwtKey,
  updateJwtKey,
} from './key-store.ts'

const HOUR = 3_600_000
/**
 * Milliseconds for which a key is published before it signs, and after it has signed: verifiers may keep the published set for a day, and
 * get it from a cache that is an hour old (`PUBLIC_FOR` in auth/jwt/routes.ts); a token lives for a day at most.
 */
const TURN = 25 * HOUR
/** Retired keys are listed for as long. */
const LISTED = 90 * 24 * HOUR

type Turn = { readonly [State in 'signing' | 'standby']: JwtKey | undefined } & {
  readonly all: readonly JwtKey[]
}

/**
 * Makes the keys that are missing, and gives the turn to the next one when it is due. One process after the other does it, so that two
 * never make two.
 */
export const keepJwtKeys = (kernel: Kernel): Promise<void> =>
  changingKeys(kernel, async (kernel, { signing, standby: listed, all }) => {
    for (const key of all) if (hasPassed(kernel, key.previousAt)) await endKey(kernel, key)
    const standby = isWanted(kernel, listed) ? listed : await endKey(kernel, listed)
    if (signing === undefined) await beginSigning(kernel, standby)
    else if (privateKeyOf(kernel.secrets, signing) === undefined) await passOn(kernel, signing, standby)
    else if (isDue(kernel, signing) && hasPassed(kernel, standby?.createdAt))
      await passOn(kernel, signing, standby)
  })

/** Once an hour. */
export async function maintainJwtKeys(kernel: Kernel): Promise<void> {
  if (!kernel.config.auth.jwt.enabled) return
  await keepJwtKeys(kernel)
  await deleteRetiredJwtKeys(kernel.db, new Date(kernel.now().getTime() - LISTED))
}

/** Gives the turn to the next key. It must have been published for long enough, unless `atOnce`. */
export const rotateJwtKeys = (kernel: Kernel, { atOnce }: { readonly atOnce: boolean }): Promise<void> =>
  changingKeys(kernel, async (kernel, { signing, standby }) => {
    if (signing !== undefined && !atOnce && !hasPassed(kernel, standby?.createdAt))
      throw new Error(tooYoung(standby))
    await passOn(kernel, signing, standby)
  })

const tooYoung = (standby: JwtKey | undefined): string => {
  const from = standby && new Date(standby.createdAt.getTime() + TURN).toISOString()
  return (
    `The next key has not been published for 25 hours, so verifiers may not know it yet: rotate ${from === undefined ? 'later' : `from ${from}`}, ` +
    'or add --now, and their tokens fail until they fetch the keys again.'
  )
}

/** Ends a key at once, also one that signs: its tokens are refused, and the next key signs. */
export const retireJwtKey = (kernel: Kernel, id: string): Promise<void> =>
  changingKeys(kernel, async (kernel, { signing, standby, all }) => {
    const key = all.find((each) => each.id === id)
    if (key === undefined) throw new Error(`There is no key ${id}. See gatehouse jwt-keys list.`)
    if (key.state === 'retired') throw new Error(`The key ${id} is retired already.`)
    await endKey(kernel, key)
    if (key === signing) await beginSigning(kernel, standby)
  })

/** Afterwards one key signs and one is next, whatever the work has ended. */
const changingKeys = (
  kernel: Kernel,
  work: (kernel: Kernel, turn: Turn) => Promise<unknown>,
): Promise<void> =>
  actAsOperator(kernel, async (kernel) => {
    untold(kernel, 'no key is due')
    await lockJwtKeys(kernel.db)
    await work(kernel, await turnOf(kernel.db))
    const { signing, standby } = await turnOf(kernel.db)
    if (signing === undefined) await createKey(kernel, 'signing')
    if (standby === undefined) await createKey(kernel, 'standby')
  })

async function turnOf(db: Db): Promise<Turn> {
  const all = await listJwtKeys(db)
  const oneIn = (state: JwtKeyState) => all.find((key) => key.state === state)
  return { all, signing: oneIn('signing'), standby: oneIn('standby') }
}

const hasPassed = ({ now }: Kernel, since: Date | null | undefined): boolean =>
  since != null && now().getTime() - since.getTime() >= TURN

/** Another algorithm, or a secret that nobody has any more, makes a key useless before its turn. */
const isWanted = ({ config, secrets }: Kernel, standby: JwtKey | undefined): boolean =>
  standby === undefined ||
  (standby.algorithm === config.auth.jwt.algorithm && privateKeyOf(secrets, standby) !== undefined)

const isDue = ({ config, now }: Kernel, { algorithm, signingAt }: JwtKey): boolean =>
  algorithm !== config.auth.jwt.algorithm ||
  now().getTime() - (signingAt?.getTime() ?? 0) >= config.auth.jwt.rotate_every

async function passOn(
  kernel: Kernel,
  signing: JwtKey | undefined,
  standby: JwtKey | undefined,
): Promise<void> {
  const previousAt = kernel.now()
  // Its private key is of no use any more.
  if (signing !== undefined)
    await updateJwtKey(kernel.db, signing.id, { state: 'previous', previousAt, sealedKey: null })
  await beginSigning(kernel, standby)
}

async function beginSigning(kernel: Kernel, standby: JwtKey | undefined): Promise<void> {
  if (standby === undefined || privateKeyOf(kernel.secrets, standby) === undefined) {
    await endKey(kernel, standby)
    return createKey(kernel, 'signing')
  }
  await updateJwtKey(kernel.db, standby.id, { state: 'signing', signingAt: kernel.now() })
  await tell(kernel, 'jwt_key.rotated', { targetId: standby.id })
}

async function createKey(kernel: Kernel, state: 'signing' | 'standby'): Promise<void> {
  const { config, now, random, secrets } = kernel
  const createdAt = now()
  const id = uuidv7(createdAt, random)
  const { algorithm } = config.auth.jwt
  const { publicJwk, privateKey } = generateKey(algorithm)
  await insertJwtKey(kernel.db, {
    ...{ id, algorithm, state, publicJwk, createdAt },
    sealedKey: secrets.seal('jwt-key', privateKey, id),
    signingAt: state === 'signing' ? createdAt : null,
  })
  await tell(kernel, 'jwt_key.created', { targetId: id, details: { algorithm, state } })
}

async function endKey(kernel: Kernel, key: JwtKey | undefined): Promise<undefined> {
  if (key === undefined || key.state === 'retired') return
  await updateJwtKey(kernel.db, key.id, { state: 'retired', retiredAt: kernel.now(), sealedKey: null })
  await tell(kernel, 'jwt_key.retired', { targetId: key.id })
}

/** Undefined when no secret of this process opens it. */
export function privateKeyOf(
  secrets: Secrets,
  { id, sealedKey }: Pick<JwtKey, 'id' | 'sealedKey'>,
): KeyObject | undefined {
  const pem = sealedKey === null ? undefined : secrets.open('jwt-key', sealedKey, id)
  return pem === undefined ? undefined : createPrivateKey(pem)
}

/** After a rotation of the secret: seals the keys with the current one, so that the previous one can be removed. */
export async function resealJwtKeys({ db, secrets }: Kernel): Promise<void> {
  if (!secrets.isRotating) return
  for (const { id, sealedKey: from } of await listJwtKeys(db)) {
    const opened = from === null || secrets.isCurrent(from) ? undefined : secrets.open('jwt-key', from, id)
    if (from === null || opened === undefined) continue
    await resealJwtKey(db, id, { from, to: secrets.seal('jwt-key', opened, id) })
  }
}
