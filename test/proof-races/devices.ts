import { newUserCode, userCodeHashes } from '#auth/device/user-code.ts'
import type { WrittenInheritance } from '#identity/inherited-sessions.ts'
import { tokenHash } from '#identity/tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { randomToken } from '#kernel/random.ts'
import { GRANT_TYPE } from '#test/devices.ts'

const CLIENT_ID = 'tv'
const TEN_MINUTES = 600_000

type Owner = { readonly userCode: string; readonly tickets: Readonly<Record<string, string>> }

export const newCode = ({ random }: Kernel): string => newUserCode(random)

/** A device for each user code, which waits for an answer, and one for each approval among the tickets. */
export async function insertDevices(kernel: Kernel, owners: readonly Owner[]): Promise<void> {
  const { db, now, random } = kernel
  const createdAt = now()
  const rowOf = (deviceCode: string, userCode: string, status: 'pending' | 'approved') => ({
    ...{ deviceHash: tokenHash(deviceCode), userCodeHash: userCodeHashes(kernel, userCode)[0], status },
    ...{ clientId: CLIENT_ID, pollInterval: 5_000, nextPollAt: createdAt, createdAt },
    expiresAt: new Date(createdAt.getTime() + TEN_MINUTES),
  })
  const rows = owners.flatMap(({ userCode, tickets }) => [
    rowOf(randomToken(random), userCode, 'pending'),
    ...Object.entries(tickets)
      .filter(([name]) => name.startsWith('device-session'))
      .map(([, deviceCode]) => rowOf(deviceCode, newCode(kernel), 'approved')),
  ])
  await db.insertInto('deviceAuthorization').values(rows).execute()
}

/** The approval is by a session that has shown everything. */
export const approvalBy = (at: Date): WrittenInheritance => ({
  ...{ createdAt: at.toISOString(), remembered: true, userHad: ['password'] },
  shown: ['password', 'totp', 'passkey', 'provider:github'],
  ...{ authTime: at.toISOString(), passwordShownAt: at.toISOString(), factorShownAt: at.toISOString() },
})

export const deviceToken = (device_code: string | undefined): object => ({
  ...{ grant_type: GRANT_TYPE, device_code, client_id: CLIENT_ID },
})
