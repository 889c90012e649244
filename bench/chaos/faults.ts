import { open, rm, statfs } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { withClient } from '#test/database.ts'
import type { Fixture } from './fixture.ts'

export type Fault = {
  readonly name: string
  /** The reason if the machine does not allow this fault, otherwise undefined. */
  readonly unlessPossible?: (fixture: Fixture) => string | undefined
  /** Injects the fault. Resolves when it is over. */
  run(fixture: Fixture): Promise<void>
  /** Number of workers that may be lost. */
  readonly workers?: number
}

/** Duration of lasting faults, in milliseconds. */
const WHILE = 6_000

export const FAULTS: readonly Fault[] = [
  { name: 'kill connections', run: killConnections },
  { name: 'restart -m fast', run: ({ database }) => restart(database, 'SIGINT') },
  { name: 'restart -m immediate', run: ({ database }) => restart(database, 'SIGQUIT') },
  { name: 'freeze the database', run: freezeDatabase },
  { name: 'drop packets', run: dropPackets },
  { name: 'forget connections', run: async ({ proxy }) => proxy.forget() },
  { name: 'reset connections', run: resetConnections },
  { name: 'slow network', run: slowNetwork },
  { name: 'freeze a worker', workers: 1, run: freezeWorker },
  { name: 'kill a worker', workers: 1, run: killWorker },
  { name: 'hang the mail server', run: hangMail },
  {
    name: 'fill the disk',
    unlessPossible: ({ disk }) => (disk === undefined ? 'only root can mount a small disk' : undefined),
    run: fillDisk,
  },
]

async function killConnections({ database }: Fixture): Promise<void> {
  for (let turn = 0; turn < 10; turn++) {
    await withClient(database.url('postgres'), (db) =>
      db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where backend_type = 'client backend' and pid <> pg_backend_pid() and random() < 0.3`,
      ),
    )
    await sleep(200)
  }
}

async function restart(database: Fixture['database'], signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  await database.stop(signal)
  await sleep(1_000)
  await database.start()
}

async function freezeDatabase({ database }: Fixture): Promise<void> {
  const thaw = await database.freeze()
  await sleep(WHILE)
  thaw()
}

async function dropPackets({ proxy }: Fixture): Promise<void> {
  proxy.freeze()
  await sleep(WHILE)
  await proxy.mend()
}

async function resetConnections({ proxy }: Fixture): Promise<void> {
  for (let turn = 0; turn < 5; turn++) {
    proxy.reset()
    await sleep(300)
  }
}

async function slowNetwork({ proxy }: Fixture): Promise<void> {
  proxy.slow(200)
  await sleep(WHILE)
  await proxy.mend()
}

/** Freezes a worker longer than the primary tolerates, until it is replaced or 15 s have passed. */
async function freezeWorker({ service }: Fixture): Promise<void> {
  const pid = await oneOf(service)
  process.kill(pid, 'SIGSTOP')
  const until = performance.now() + 15_000
  while (performance.now() < until && isThere(pid)) await sleep(100)
  if (isThere(pid)) process.kill(pid, 'SIGCONT')
}

async function killWorker({ service }: Fixture): Promise<void> {
  process.kill(await oneOf(service), 'SIGKILL')
}

async function oneOf(service: Fixture['service']): Promise<number> {
  const workers = await service.workers()
  const pid = workers[Math.floor(Math.random() * workers.length)]
  if (pid === undefined) throw new Error('there is no worker')
  return pid
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function hangMail({ mail }: Fixture): Promise<void> {
  const goOn = mail.hang()
  await sleep(WHILE)
  goOn()
}

/** Fills the disk. PostgreSQL may crash because it cannot write its WAL; then it is restarted. */
async function fillDisk({ disk = '', database }: Fixture): Promise<void> {
  const file = path.join(disk, 'ballast')
  const { bavail, bsize } = await statfs(disk)
  const handle = await open(file, 'w')
  try {
    const block = Buffer.alloc(1024 * 1024)
    for (let left = bavail * bsize; left > 0; left -= block.length) await handle.write(block)
  } catch {
    // The disk is full.
  } finally {
    await handle.close()
  }
  await sleep(WHILE)
  await rm(file)
  // PostgreSQL restarts by itself or has exited.
  await sleep(1_000)
  if (database.hasDied()) await database.start()
}
