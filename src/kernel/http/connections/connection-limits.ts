import type { Socket } from 'node:net'
import type { Config } from '../../config/config.ts'
import { createPeers } from '../client-address.ts'
import { networkOf } from '../limits/limits.ts'

type ConnectionLimits = {
  /** Counts a new connection. Over a limit, it ends one without a request, or returns false. */
  admit(socket: Socket): boolean
}

/** Connections that are looked at for one without a request. */
const LOOKED_AT = 256

/** Strangers who hold connections without a request make room for callers; only those with requests shut others out. */
export function createConnectionLimits(
  config: Config,
  isIdle: (socket: Socket) => boolean,
): ConnectionLimits {
  const most = config.limits.connections ?? limitOf(openFiles(), reserveOf(config))
  const perAddress = config.limits.connections_per_address ?? Math.ceil(most / 2)
  const peerOf = createPeers(config.server.trusted_proxies)
  const all = new Map<Socket, string>()
  const byAddress = new Map<string, Set<Socket>>()

  function count(socket: Socket, address: string): void {
    all.set(socket, address)
    byAddress.set(address, (byAddress.get(address) ?? new Set()).add(socket))
    socket.once('close', () => forget(socket, address))
  }
  function forget(socket: Socket, address: string): void {
    all.delete(socket)
    const ofAddress = byAddress.get(address)
    ofAddress?.delete(socket)
    if (ofAddress?.size === 0) byAddress.delete(address)
  }
  /** Ends the oldest connection without a request. */
  function makeRoom(among: Iterable<Socket>): boolean {
    let looked = 0
    for (const socket of among) {
      if (isIdle(socket)) {
        // Its `close` comes later, and its place is free now.
        forget(socket, all.get(socket) ?? '')
        socket.destroy()
        return true
      }
      if (++looked === LOOKED_AT) return false
    }
    return false
  }
  return {
    admit(socket) {
      const { address, isProxy } = peerOf(socket)
      const key = networkOf(address)
      const ofAddress = byAddress.get(key)
      if (ofAddress !== undefined && !isProxy && ofAddress.size >= perAddress && !makeRoom(ofAddress))
        return false
      if (all.size >= most && !makeRoom(all.keys())) return false
      count(socket, key)
      return true
    },
  }
}

/** Connections that a process accepts, however many files it may open: each takes about 20 kB. */
const MOST = 10_000
const LEAST = 16

const limitOf = (files: number, reserve: number): number =>
  Math.max(LEAST, Math.min(MOST, files - Math.max(reserve, Math.ceil(files / 4))))

/** Files of the program, and of connections to the control database besides its pool. */
const OWN_FILES = 64 + 12
/** The built-in clients, with the defaults of a client. */
const BUILT_IN = 2 * 18

/** Files for everything but callers. */
const reserveOf = ({ database, clients }: Config): number =>
  Object.values(clients).reduce(
    (sum, { max_connections, sql_connections }) => sum + max_connections + 2 * sql_connections,
    OWN_FILES + database.max_connections + BUILT_IN,
  )

/** RLIMIT_NOFILE. Node has raised it to the hard limit. */
function openFiles(): number {
  // @types/node 26.6.6 lack both members.
  const report = process.report as unknown as {
    excludeNetwork: boolean
    getReport(): { readonly userLimits?: { readonly open_files?: { readonly soft: unknown } } }
  }
  const before = report.excludeNetwork
  report.excludeNetwork = true
  const soft = Number(report.getReport().userLimits?.open_files?.soft)
  report.excludeNetwork = before
  // It may be `unlimited`.
  return Number.isFinite(soft) ? soft : Number.MAX_SAFE_INTEGER
}
