import { hash } from 'node:crypto'
import type { Kernel } from '#kernel/kernel.ts'
import { uuidv7 } from '#kernel/random.ts'
import { notify } from './store.ts'

/**
 * Decides which process looks for changes of one database (docs/decisions/0074-streams-of-live-rows.md). Each process reads them for itself, from where it
 * has come to. It only need not look as long as another one does, and tells of changes.
 */
export type Poller = {
  /** Whether to look for changes now, without having been told of any. */
  isDue(): boolean
  /** Changes were read up to now. `found`: there were some. */
  hasRead(found: boolean): void
  close(): void
}

type Pollers = {
  /** `ring` is called when there is something to read. Without an identity of the database the process looks for itself. */
  join(database: string | undefined, ring: () => void): Poller
}

type Message = {
  readonly process: string
  /** It looks for changes, and has just done so. */
  readonly polls: boolean
  /** It has found some. */
  readonly found: boolean
}

/** A poller, for messages about its database. */
type Member = { hear(message: Message): void; back(): void }

const CHANNEL = 'gatehouse_changes'
/** Milliseconds after which the process that looks says so again. */
const BEAT = 1_000
/** After which it is taken for dead: the others look themselves. */
const DEAD = 3 * BEAT
/** After which a process looks although another one does, and says that it is there. */
const IDLE = 10_000
/** After which one that has said nothing is no longer told. */
const GONE = 3 * IDLE

export function createPollers(kernel: Pick<Kernel, 'coherence' | 'db' | 'now' | 'random'>): Pollers {
  const members = new Map<string, Set<Member>>()
  /** The name of this process, with the first stream. By time, so that the oldest process looks, and a new one changes nothing. */
  let self = ''

  function listen(): void {
    if (self !== '') return
    self = uuidv7(kernel.now(), kernel.random)
    const back = () => {
      for (const those of members.values()) for (const member of those) member.back()
    }
    void kernel.coherence.listen(CHANNEL, receive, back)
  }

  function receive(payload: string): void {
    const [name = '', process = '', polls, found] = payload.split(' ')
    if (process === self) return
    const message = { process, polls: polls === 'polls', found: found === 'found' }
    for (const member of members.get(name) ?? []) member.hear(message)
  }

  async function say(name: string, polls: boolean, found: boolean): Promise<void> {
    const words = [name, self, polls ? 'polls' : 'follows', found ? 'found' : 'same']
    await notify(kernel.db, CHANNEL, words.join(' '))
  }

  return {
    join(database, ring) {
      if (database === undefined) return ALONE
      listen()
      const name = hash('sha256', database, 'base64url').slice(0, 22)
      const those = members.get(name) ?? new Set()
      members.set(name, those)
      const { member, ...poller } = createPoller({ self, ring, say: (...words) => say(name, ...words) })
      those.add(member)
      return {
        ...poller,
        close() {
          those.delete(member)
          if (those.size === 0 && members.get(name) === those) members.delete(name)
          poller.close()
        },
      }
    },
  }
}

const ALONE: Poller = { isDue: () => true, hasRead() {}, close() {} }

type PollerParts = {
  readonly self: string
  readonly ring: () => void
  say(polls: boolean, found: boolean): Promise<void>
}

function createPoller({ self, ring, say }: PollerParts): Poller & { readonly member: Member } {
  const time = () => performance.now()
  let readAt = time()
  let saidAt = Number.NEGATIVE_INFINITY
  /** The process that looks in place of this one, and until when that is believed. */
  let other = { process: '', until: 0 }
  /** There are others until then, as far as is known. */
  let others = time() + GONE
  let isUntold = false
  const isMine = () => time() >= other.until

  function tell(): void {
    const [found, before] = [isUntold, saidAt]
    isUntold = false
    saidAt = time()
    say(isMine(), found).catch(() => {
      // With the next one. If none gets through, the others take this process for dead.
      isUntold ||= found
      saidAt = before
    })
  }

  return {
    isDue: () => isMine() || time() - readAt >= IDLE,
    hasRead(found) {
      readAt = time()
      // Nobody is there: whoever comes begins with a position of then.
      if (readAt >= others) isUntold = false
      else if (!isMine()) {
        if (readAt - saidAt >= IDLE) tell()
      } else {
        isUntold ||= found
        if (isUntold || readAt - saidAt >= BEAT) tell()
      }
    },
    close() {
      if (isMine() && time() < others) say(false, false).catch(() => {})
    },
    member: {
      hear({ process, polls, found }) {
        others = time() + GONE
        if (polls && process < self) {
          // Its first look may have come after the last one of this process, and tells nothing of what was before.
          if (isMine()) ring()
          other = { process, until: time() + DEAD }
        } else if (process === other.process) other = { process, until: 0 }
        if (found) ring()
      },
      back() {
        others = time() + GONE
        ring()
      },
    },
  }
}
