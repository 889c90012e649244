import type { Bench, Scenario } from '../scenario.ts'
import { httpSide } from '../sides.ts'
import type { Side } from '../turns.ts'
import { athena } from './athena.ts'
import { betterAuth } from './better-auth.ts'
import { directus } from './directus.ts'
import { parseServer } from './parse-server.ts'
import type { PeerDefinition } from './peer-definition.ts'
import { pocketBase } from './pocketbase.ts'

const PEERS: Readonly<Record<string, PeerDefinition>> = {
  'better-auth': betterAuth,
  PocketBase: pocketBase,
  'parse-server': parseServer,
  Directus: directus,
  athena_rs: athena,
}

type Found = { readonly sides: readonly Side[]; readonly missing: Readonly<Record<string, string>> }

/** The sides of the peers that can do a scenario's work, as far as they are installed. */
export async function peersOf({ peers }: Scenario, bench: Bench): Promise<Found> {
  const sides: Side[] = []
  const missing: Record<string, string> = {}
  for (const [name, peer] of Object.entries(PEERS)) {
    const makeLoad = peers && peer.loads[peers]
    if (makeLoad === undefined) continue
    if (!peer.isInstalled()) missing[name] = 'it was not installed (`npm run bench -- peers`)'
    else
      await sideOf(name, peer, makeLoad, bench).then(
        (side) => sides.push(side),
        (error: Error) => {
          missing[name] = `it did not start: ${error.message.split('\n')[0]}`
        },
      )
  }
  return { sides, missing }
}

async function sideOf(
  name: string,
  { start, about }: PeerDefinition,
  makeLoad: NonNullable<PeerDefinition['loads']['row']>,
  bench: Bench,
): Promise<Side> {
  const running = await start(bench)
  return httpSide(bench.loader, { name, about, pid: running.pid, ...(await makeLoad(running, bench)) })
}

/** Installs the peers that are not there. One that cannot be installed is reported and left out. */
export async function installPeers(names: readonly string[]): Promise<void> {
  for (const [name, { isInstalled, install }] of Object.entries(PEERS)) {
    if (isInstalled() || (names.length > 0 && !names.includes(name))) continue
    console.log(`\n${name}:`)
    await install().catch((error: Error) => console.log(`${name} is missing: ${error.message}`))
  }
}
