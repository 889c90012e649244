import { setTimeout as sleep } from 'node:timers/promises'
import {
  abandonRefresh,
  beginRefresh,
  isUnchanged,
  type LinkedAccount,
  type ProviderTokens,
} from '#identity/provider-tokens.ts'
import type { Kernel } from '#kernel/kernel.ts'
import { fail } from '../errors.ts'

/**
 * Asks a provider for new tokens of an account: once for all concurrent callers. In a process they share one request. Between processes
 * the column `refreshing_until` decides which one asks, and the others look at the row until its tokens have changed. No connection to the
 * database is held meanwhile, so a provider that hangs takes none from the pool.
 */
export type TokenRefreshes = {
  /** `use` gets the new tokens, which are not stored yet; undefined when another process has stored some. */
  run<T>(account: LinkedAccount, use: (tokens: ProviderTokens | undefined) => Promise<T>): Promise<T>
}

/** Asks the provider of the account for new tokens. */
type Refresh = (account: LinkedAccount) => Promise<ProviderTokens>

export function createTokenRefreshes(kernel: Kernel, refresh: Refresh): TokenRefreshes {
  /** By the version of the tokens that are replaced: a refresh of others is another one. */
  const running = new Map<string | null, RunningRefresh>()
  return {
    async run(account, use) {
      const shared = running.get(account.version) ?? start(kernel, refresh, account)
      running.set(account.version, shared)
      shared.users++
      try {
        return await use(await shared.tokens)
      } finally {
        shared.users--
        if (shared.users === 0) {
          running.delete(account.version)
          await shared.end()
        }
      }
    },
  }
}

type RunningRefresh = {
  readonly tokens: Promise<ProviderTokens | undefined>
  /** Lets others try when no user has stored the tokens. */
  readonly end: () => Promise<void>
  users: number
}

function start(kernel: Kernel, refresh: Refresh, account: LinkedAccount): RunningRefresh {
  let until: Date | undefined
  const ask = async (): Promise<ProviderTokens | undefined> => {
    until = await takeTurn(kernel, account)
    return until && refresh(account)
  }
  const end = async () => until && abandonRefresh(kernel.db, account, until)
  return { tokens: ask(), end, users: 0 }
}

/** The end of this process's turn; undefined when another process has replaced the tokens. */
async function takeTurn(kernel: Kernel, account: LinkedAccount): Promise<Date | undefined> {
  for (const pause of PAUSES) {
    const until = new Date(kernel.now().getTime() + MAX_TURN)
    if (await beginRefresh(kernel, account, until)) return until
    if (!(await isUnchanged(kernel.db, account))) return undefined
    await sleep(pause)
  }
  throw fail('FAILED_TO_REFRESH_ACCESS_TOKEN')
}

/** After it another process may ask: this one has crashed. Longer than a request to a provider may take, with the statements after it. */
const MAX_TURN = 30_000
/** Between two looks at the row while another process asks; together 15 s. */
const PAUSES = [50, 100, 200, 400, ...Array<number>(29).fill(500)]
