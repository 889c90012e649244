import { Secret, TOTP } from 'otpauth'
import type { DEMANDS } from '#auth/door/demands.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Answer } from '#test/harness.ts'
import { NO_FACTOR, TOTP_SECRETS, WITH_FACTOR } from '#test/proof-races/second-factor.ts'
import { newAddress, type TestUser, type UserState } from '#test/proof-races/user-state.ts'
import type { Thief } from './thief.ts'

const MINUTE = 60_000
/** The last proof is too old for what asks for one within ten minutes, but fresh. */
const LATELY = 11 * MINUTE
const LONG_AGO = 1_500 * MINUTE

/** A verb with a demand, as the holder of a stolen session asks for it. */
export type Demanding = {
  /** Of every proof that the session has shown. */
  readonly age: number
  /** Differences of the state, which is that of an account with everything. */
  readonly start?: Partial<UserState>
  readonly prepare?: (kernel: Kernel, person: TestUser) => Promise<unknown>
  readonly attempt: (thief: Thief) => Promise<Answer>
  /** Has it done what it is for? Default: status 200. */
  readonly succeeded?: (answer: Answer) => boolean
  /** An account without a password has no such verb. */
  readonly needsPassword?: true
}

const begun = { ...NO_FACTOR, factorBegun: 'S' } as const

/** A verb of auth/door/demands.ts without an entry does not compile. */
export const DEMANDING: Readonly<Record<keyof typeof DEMANDS, Demanding>> = {
  linkAccount: { age: LONG_AGO, attempt: (thief) => thief.post('/link-social', { provider: 'acme' }) },
  setPassword: {
    age: LONG_AGO,
    start: { password: null },
    attempt: (thief) => thief.post('/set-password', { newPassword: 'the password of a thief' }),
  },
  addPasskey: {
    age: LONG_AGO,
    start: { tickets: ['passkey-registration of S'] },
    attempt: (thief) => thief.post('/passkey/verify-registration', thief.person.passkey.registration('S')),
  },
  approveDevice: {
    age: LONG_AGO,
    attempt: (thief) => thief.post('/device/approve', { userCode: thief.person.userCode }),
  },
  addFactor: {
    age: LATELY,
    start: NO_FACTOR,
    attempt: (thief) => thief.post('/two-factor/enable', { method: 'otp' }),
  },
  confirmFactor: {
    age: LONG_AGO,
    start: begun,
    attempt: (thief) => {
      const app = new TOTP({ secret: Secret.fromBase32(TOTP_SECRETS.second) })
      return thief.post('/two-factor/verify-totp', { code: app.generate() })
    },
  },
  enrolRestricted: {
    age: LATELY,
    start: { ...NO_FACTOR, role: 'admin', passkeys: [] },
    prepare: ({ db }, { id }) =>
      db
        .updateTable('session')
        .set({ shown: ['password', 'provider:github'] })
        .where('userId', '=', id)
        .execute(),
    attempt: (thief) => thief.get('/passkey/generate-register-options'),
  },
  unlinkAccount: {
    age: LONG_AGO,
    attempt: (thief) => thief.post('/unlink-account', { providerId: 'github', accountId: thief.person.id }),
  },
  unlinkPassword: {
    age: LATELY,
    needsPassword: true,
    attempt: (thief) => thief.post('/unlink-account', { providerId: 'credential' }),
  },
  removePasskey: {
    age: LONG_AGO,
    attempt: (thief) => thief.post('/passkey/delete-passkey', { id: thief.person.passkey.id }),
  },
  replaceFactor: { age: LATELY, attempt: (thief) => thief.post('/two-factor/enable') },
  disableFactor: { age: LATELY, attempt: (thief) => thief.post('/two-factor/disable') },
  readSecret: { age: LATELY, attempt: (thief) => thief.post('/two-factor/get-totp-uri') },
  readBegunSecret: {
    age: LATELY,
    start: begun,
    attempt: (thief) => thief.post('/two-factor/get-totp-uri'),
  },
  replaceBackupCodes: {
    age: LATELY,
    attempt: (thief) => thief.post('/two-factor/generate-backup-codes'),
  },
  changeUnprovenEmail: {
    age: LATELY,
    start: { verified: false },
    attempt: (thief) => thief.post('/change-email', { newEmail: newAddress(thief.person.email, 'S') }),
  },
  assignOwnPassword: {
    age: LATELY,
    start: { role: 'keeper' },
    attempt: (thief) =>
      thief.post('/admin/set-user-password', {
        userId: thief.person.id,
        newPassword: 'the password of a thief',
      }),
  },
  changeOwnEmail: {
    age: LATELY,
    start: { role: 'keeper' },
    attempt: (thief) =>
      thief.post('/admin/update-user', {
        userId: thief.person.id,
        data: { email: newAddress(thief.person.email, 'S') },
      }),
  },
  deleteUser: {
    age: LATELY,
    attempt: (thief) => thief.post('/delete-user'),
    succeeded: ({ body }) => body?.message === 'User deleted',
  },
}

/** An account with everything that can be demanded. */
export const WITH_EVERYTHING = { ...WITH_FACTOR, passkeys: ['first'], verified: true } as const
