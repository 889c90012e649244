import type { Db } from '#kernel/db/connect.ts'
import { rowsById } from '#kernel/db/rows-by-id.ts'
import type { Kernel } from '#kernel/kernel.ts'
import type { Secrets } from '#kernel/secrets.ts'
import { PROVIDER_TOKEN } from './provider-tokens.ts'

/** After a rotation of the secret: seals all tokens with the current one, so that the previous one can be removed. */
export async function resealProviderTokens({ db, secrets, now }: Kernel): Promise<void> {
  if (!secrets.isRotating) return
  await changeTokens(db, now(), (sealed, owner) => {
    const token = secrets.isCurrent(sealed) ? undefined : secrets.open(PROVIDER_TOKEN, sealed, owner)
    return token === undefined ? sealed : secrets.seal(PROVIDER_TOKEN, token, owner)
  })
}

/** Removes the tokens that neither secret opens; returns the number of accounts that had some. Their users can still sign in. */
export const dropUnreadableTokens = (db: Db, secrets: Secrets, now: Date): Promise<number> =>
  changeTokens(db, now, (sealed, owner) =>
    secrets.open(PROVIDER_TOKEN, sealed, owner) === undefined ? null : sealed,
  )

type Change = (sealed: string, owner: string) => string | null

/** Returns the number of changed accounts. One that is being refreshed is left as it is: its new tokens are sealed anyway. */
async function changeTokens(db: Db, now: Date, change: Change): Promise<number> {
  let changed = 0
  for await (const { id, ...before } of accountsWithTokens(db)) {
    const changedToken = (sealed: string | null) => sealed && change(sealed, id)
    const after = {
      sealedAccessToken: changedToken(before.sealedAccessToken),
      sealedRefreshToken: changedToken(before.sealedRefreshToken),
      sealedIdToken: changedToken(before.sealedIdToken),
    }
    if (COLUMNS.every((column) => after[column] === before[column])) continue
    const { numUpdatedRows } = await db
      .updateTable('account')
      .set(after)
      .where('id', '=', id)
      .where((of) => of.and(COLUMNS.map((column) => of(column, 'is not distinct from', before[column]))))
      .where((of) => of.or([of('refreshingUntil', 'is', null), of('refreshingUntil', '<=', now)]))
      .executeTakeFirst()
    changed += Number(numUpdatedRows)
  }
  return changed
}

const COLUMNS = ['sealedAccessToken', 'sealedRefreshToken', 'sealedIdToken'] as const

const accountsWithTokens = (db: Db) =>
  rowsById((after, max) =>
    db
      .selectFrom('account')
      .select(['id', ...COLUMNS])
      .where('id', '>', after)
      .where('providerId', '!=', 'credential')
      .orderBy('id')
      .limit(max)
      .execute(),
  )
