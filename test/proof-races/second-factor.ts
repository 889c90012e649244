import type { Selectable } from 'kysely'
import { codeHashes } from '#auth/two-factor/codes.ts'
import type { BackupCodeTable, TwoFactorTable } from '#kernel/db/tables.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import type { TestUser, UserState, Who } from './user-state.ts'

/** The part of a user's state that belongs to the second factor. */
export type FactorState = {
  /** The factor in force: none, the first one, or the second, which was begun after it. */
  readonly factor: 'none' | 'first' | 'second'
  /** The second one waits for its first right code, in this session. */
  readonly factorBegun: Who | false
  /** Backup codes that are left of the factor in force. */
  readonly backupCodes: number | 'replaced'
  /** A browser needs no second factor. */
  readonly trusted: boolean
}

export const NO_FACTOR: FactorState = { factor: 'none', factorBegun: false, backupCodes: 0, trusted: false }
/** A factor in force, and all that depends on it. */
export const WITH_FACTOR = { factor: 'first', backupCodes: 1, trusted: true } as const

/** Secrets of the authenticator app, for all users alike. */
export const TOTP_SECRETS = { first: 'A'.repeat(32), second: 'B'.repeat(32) } as const
export const BACKUP_CODE = 'aaaaa-aaaaa'

type Owner = Pick<TestUser, 'id' | 'sessions'> & { readonly state: UserState }
const DAY = 86_400_000

/** Each factor has one backup code. */
export async function insertFactors(kernel: Kernel, people: readonly Owner[]): Promise<void> {
  const { db, secrets, now, random } = kernel
  const createdAt = now()
  const factors = people.flatMap(({ id: userId, sessions, state }) =>
    (['first', 'second'] as const)
      .filter((name) => (name === 'first' ? state.factor === 'first' : state.factorBegun !== false))
      .map((name) => ({
        ...{ id: uuidv7(createdAt, random), userId, createdAt, method: 'totp' },
        ...{
          inForce: name === 'first',
          addedBy: name === 'second' && state.factorBegun !== false ? sessions[state.factorBegun].id : null,
          secret: secrets.seal('two-factor-secret', TOTP_SECRETS[name], userId),
        },
      })),
  )
  const codes = factors.map(({ id: twoFactorId, userId: owner }) => ({
    ...{ twoFactorId, codeHash: codeHashes(kernel, 'backup', { owner, code: BACKUP_CODE })[0] },
  }))
  const devices = people
    .filter(({ state }) => state.trusted)
    .map(({ id: userId }) => ({
      ...{ id: uuidv7(createdAt, random), userId, createdAt, tokenHash: random(32) },
      expiresAt: new Date(createdAt.getTime() + DAY),
    }))
  if (factors.length > 0) await db.insertInto('twoFactor').values(factors).execute()
  if (codes.length > 0) await db.insertInto('backupCode').values(codes).execute()
  if (devices.length > 0) await db.insertInto('trustedDevice').values(devices).execute()
}

/** Reads the states of these users. */
export async function readFactors(
  { db, ...kernel }: Kernel,
  ids: readonly string[],
): Promise<
  (
    user: { readonly id: string; readonly twoFactorEnabled: boolean },
    person: Pick<TestUser, 'sessions'>,
  ) => FactorState
> {
  const [factors, codes, devices] = await Promise.all([
    db.selectFrom('twoFactor').selectAll().where('userId', 'in', ids).execute(),
    db
      .selectFrom('backupCode')
      .innerJoin('twoFactor', 'twoFactor.id', 'twoFactorId')
      .select(['twoFactorId', 'codeHash'])
      .where('userId', 'in', ids)
      .execute(),
    db.selectFrom('trustedDevice').selectAll().where('userId', 'in', ids).execute(),
  ])
  return ({ id, twoFactorEnabled }, { sessions }) => {
    const own = factors.filter(({ userId }) => userId === id)
    const inForce = own.find((factor) => factor.inForce)
    if (twoFactorEnabled !== (inForce !== undefined))
      throw new Error('the user says otherwise than the factor')
    return {
      ...factorOf({ db, ...kernel }, inForce, codes),
      factorBegun: begunBy(own, sessions),
      trusted: devices.some(({ userId }) => userId === id),
    }
  }
}

const begunBy = (
  own: readonly Selectable<TwoFactorTable>[],
  sessions: TestUser['sessions'],
): FactorState['factorBegun'] => {
  const begun = own.find(({ inForce }) => !inForce)
  if (begun === undefined) return false
  const who = (['S', 'O'] as const).find((each) => sessions[each].id === begun.addedBy)
  if (who === undefined) throw new Error('a factor was begun in no session of the test')
  return who
}

function factorOf(
  kernel: Kernel,
  factor: Selectable<TwoFactorTable> | undefined,
  codes: readonly Selectable<BackupCodeTable>[],
): Pick<FactorState, 'factor' | 'backupCodes'> {
  if (factor === undefined) return { factor: 'none', backupCodes: 0 }
  const secret = kernel.secrets.open('two-factor-secret', factor.secret ?? '', factor.userId)
  const left = codes.filter(({ twoFactorId }) => twoFactorId === factor.id)
  const [hash] = codeHashes(kernel, 'backup', { owner: factor.userId, code: BACKUP_CODE })
  const isReplaced = left.length > 0 && !left.some(({ codeHash }) => codeHash.equals(hash))
  return {
    factor: secret === TOTP_SECRETS.first ? 'first' : 'second',
    backupCodes: isReplaced ? 'replaced' : left.length,
  }
}
