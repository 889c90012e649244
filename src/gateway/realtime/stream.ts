import { networkOf } from '#kernel/http/limits/limits.ts'
import { StreamEnd } from '#kernel/open-streams.ts'
import { randomToken } from '#kernel/random.ts'
import { actorOf, type GatewayCaller, gatewayCaller } from '../caller/caller.ts'
import {
  apart,
  bytesOfKeys,
  type Cohort,
  cohortOf,
  copyOf,
  type Delivery,
  isQuiet,
  type Member,
} from './cohort.ts'
import { endingOf } from './endings.ts'
import { createEventOutput, type EventOutput } from './event-output.ts'
import {
  type EndReason,
  end,
  ending,
  eventText,
  finished,
  RETRY,
  type ResetReason,
  reset,
  silence,
} from './event-text.ts'
import { type LiveTable, openTable } from './live-table.ts'
import type { Page } from './pages.ts'
import { createSent } from './sent.ts'
import { type Shown, showSince } from './snapshot.ts'
import { streamIds } from './stream-id.ts'
import type { Opened, StreamParts } from './stream-parts.ts'
import { createTurns, pause, payersOf } from './turns.ts'

export type Stream = Pick<EventOutput, 'body'> & { end(reason: EndReason): void }

/** Seconds between signs of life. */
const SILENCE = 15
/** Seconds in which the connection takes nothing. */
const STUCK = 10
/** Milliseconds for which rows that were read may wait until their caller is judged. */
const STALE = 2_000
/** Milliseconds between two beginnings of one stream. */
const AGAIN = 1_000
/** Beginnings that fail one after the other, before the connection is closed. */
const ATTEMPTS = 4
/** Time for the last event, milliseconds. */
const LINGER = 2_000

/** The stream of one caller, from its snapshot on until it may have no more. */
export function startStream(parts: StreamParts, opened: Opened): Stream {
  const { kernel, reader, request, reply, asked } = parts
  const output = createEventOutput()
  const mayGoOn = parts.renewal.follow(request, reply)
  const inTurn = createTurns()
  const cohorts = new Set<Cohort>()
  const sent = createSent()
  const naming = { proof: parts.proof, stream: randomToken(kernel.random) }
  let ids = streamIds(opened.tables, gatewayCaller(request), naming)
  let [generation, queued, seconds, lateAt] = [0, 0, 0, Number.NEGATIVE_INFINITY]
  let [isLive, isOver] = [false, false]
  let stuck = { taken: -1, for: 0 }
  let judgedAt = -1
  let lastId: string | undefined

  const judge = (): Promise<GatewayCaller> =>
    inTurn(async () => {
      await mayGoOn()
      return gatewayCaller(request)
    })

  /** The id of now. A position, if everything up to it has been sent. */
  function idOfNow(): string | undefined {
    if (!isLive || !(ids.isNumbered || [...cohorts].every(isQuiet))) return undefined
    lastId = ids.at(reader.position(), sent.last())
    return lastId
  }

  /** Resolves when it is written. Nothing is, if the stream is over or has begun again meanwhile. */
  function send(...parts: readonly (string | Buffer)[]): Promise<void> {
    const mine = generation
    const began = performance.now()
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    queued += length
    return inTurn(async () => {
      if (isOver || mine !== generation) return
      await mayGoOn()
      if (isOver || mine !== generation) return
      // The rows may belong to others by now.
      if (performance.now() - began > STALE) return restart('rights_changed')
      for (const part of parts) output.write(part)
    }).finally(() => {
      queued -= length
    })
  }

  /** A reset before a snapshot. */
  const beginning = (reason: ResetReason): string => finished(reset(reason), ids.nowhere)

  function restart(reason: ResetReason): void {
    if (isOver) return
    generation++
    leave()
    output.write(beginning(reason))
    void run(undefined)
  }

  function deliver(delivery: Delivery, from: Cohort): void {
    const isFull = queued + output.queued() > kernel.config.limits.stream_buffer
    if (!isFull || from.members.size === 1) {
      sent.add(from.live.name, delivery.events)
      return void send(delivery.bytes, ending(idOfNow())).catch(dismiss)
    }
    const own = apart(from, member, delivery)
    cohorts.delete(from)
    cohorts.add(own)
    reader.add(own)
    reader.release(own)
  }

  const member: Member = {
    judge,
    deliver,
    drained: output.drained,
    restart,
    moved(from, to) {
      cohorts.delete(from)
      cohorts.add(to)
    },
    noted() {},
    behind(late) {
      if (!isLive || performance.now() - lateAt < SILENCE * 1_000) return
      lateAt = performance.now()
      output.write(finished(eventText('behind', JSON.stringify({ seconds: Math.round(late) }))))
    },
    dismiss,
  }

  async function run(given: Opened | undefined): Promise<void> {
    const mine = ++generation
    const goesOn = () => !isOver && mine === generation
    if (given === undefined) await pause(AGAIN)
    for (let attempt = 1; goesOn(); attempt++) {
      try {
        return await begin(attempt === 1 ? given : undefined, goesOn)
      } catch (error) {
        if (!goesOn()) return
        leave()
        if (endingOf(error) !== undefined || attempt === ATTEMPTS) return dismiss(error)
        await pause(attempt * AGAIN)
        // A part of the snapshot may have been sent.
        if (goesOn()) output.write(beginning('table_changed'))
      }
    }
  }

  async function begin(given: Opened | undefined, goesOn: () => boolean): Promise<void> {
    const caller = await judge()
    const { tables, version } = given ?? (await open(caller))
    if (!goesOn()) return
    ids = streamIds(tables, caller, naming)
    const resumed = given && resume(caller, tables)
    const own = resumed ?? tables.map((table) => cohortOf(table, member))
    for (const cohort of own) {
      cohorts.add(cohort)
      reader.add(cohort)
    }
    // Later changes of the structure restart the stream, and this one may have come before the cohorts.
    if (reader.version() !== version) return restart('table_changed')
    const position = reader.position()
    const shown = resumed === undefined ? await show(own, given !== undefined, goesOn) : 'whole'
    if (shown !== 'whole' && shown !== 'changes') return
    sent.begin()
    // A stream that comes back has told nothing yet of what came after its last event.
    const id = (shown === 'changes' && parts.lastId) || ids.at(position, sent.last())
    await send(finished(eventText('ready', JSON.stringify({ position: id })), id))
    if (!goesOn()) return
    isLive = true
    for (const cohort of own) reader.release(cohort)
  }

  /** The cohorts of the page that the reader has, if it is known what it shows. */
  function resume(caller: GatewayCaller, tables: readonly LiveTable[]): readonly Cohort[] | undefined {
    const place = parts.lastId === undefined ? undefined : ids.placeIn(parts.lastId)
    return place && parts.pages.take(place, { caller: nameOf(caller), reader }, tables, member)
  }

  async function show(own: readonly Cohort[], isFirst: boolean, goesOn: () => boolean): Promise<Shown> {
    const payers = payersOf(request, await judge())
    const outcome = await showSince({ kernel, reader, output, send, goesOn, payers }, judge, own, {
      last: isFirst ? resumedAt() : undefined,
      keysOnly: !asked.snapshot,
      reset: (reason) => output.write(beginning(reason)),
    })
    if (outcome === 'too_many') finish(reset('too_many'))
    if (outcome === 'stale') restart('rights_changed')
    return outcome
  }

  /** Leaves its cohorts to a reader who comes back. */
  function part(absent: Member, most: number): Page | undefined {
    if (!isLive || isOver || !ids.isNumbered || bytesOfKeys(cohorts) > most) return undefined
    const page = {
      cohorts: [...cohorts].map((one) => copyOf(one, absent)),
      sent,
      release: parts.retain(),
    }
    over()
    reply.raw.destroy()
    return page
  }

  async function open(caller: GatewayCaller): Promise<Opened> {
    const version = reader.version()
    const tables = asked.tables.map((table) => openTable(kernel, caller, table, reader))
    return { tables: await Promise.all(tables), version }
  }

  const resumedAt = () =>
    parts.lastId === undefined ? undefined : { position: ids.positionIn(parts.lastId) }

  function leave(): void {
    isLive = false
    for (const cohort of cohorts) {
      cohort.members.delete(member)
      if (cohort.members.size === 0) reader.remove(cohort)
    }
    cohorts.clear()
  }

  function dismiss(error: unknown): void {
    const last = endingOf(error)
    if (last !== undefined) finish(last)
    if (isOver) return
    kernel.log.info({ event: 'live_stream_cut', request_id: request.id, error }, 'a stream was cut off')
    over()
    reply.raw.destroy()
  }

  function finish(last: string): void {
    if (isOver) return
    over()
    output.end(finished(last))
    // By a reset: the system would still send to a slow reader for minutes.
    setTimeout(() => reply.raw.writableFinished || reply.raw.socket?.resetAndDestroy(), LINGER).unref()
  }

  /** Each second. */
  function look(): Promise<unknown> | undefined {
    const taken = output.taken()
    stuck = output.queued() > 0 && taken === stuck.taken ? { taken, for: stuck.for + 1 } : { taken, for: 0 }
    if (stuck.for >= STUCK) throw new StreamEnd('slow_reader', 'its reader takes nothing')
    // Callers cannot be judged: nothing is sent to them, and they are judged before it is.
    if (!kernel.coherence.isTrusted()) return undefined
    const [isSilent, changes, before] = [++seconds % SILENCE === 0, parts.changes(), lastId]
    // Sessions and keys end by time, too.
    if (!isSilent && changes === judgedAt) return undefined
    judgedAt = changes
    // An id tells that everything before it has been written.
    if (isSilent && queued === 0 && output.queued() === 0) {
      const id = idOfNow()
      output.write(silence(id === before ? undefined : id))
    }
    return judge()
  }

  const unwatch = kernel.streams.watch({
    facts: { request_id: request.id, route: request.routeOptions.url },
    mayGoOn: () => look() as Promise<void> | undefined,
    end: (error) =>
      error instanceof StreamEnd && error.code === 'slow_reader'
        ? finish(reset('slow_reader'))
        : dismiss(error),
  })
  let isClosed = false
  function over(): void {
    isOver = true
    leave()
    if (isClosed) return
    isClosed = true
    unwatch()
    parts.closed()
  }
  const address = networkOf(request.clientAddress)
  parts.pages.open(naming.stream, { caller: nameOf(gatewayCaller(request)), address, reader, part })
  const closed = () => {
    if (isOver) parts.pages.close(naming.stream)
    else parts.pages.keep(naming.stream)
    over()
  }
  if (reply.raw.destroyed) closed()
  else reply.raw.once('close', closed)
  reply.isPaced = true
  output.write(RETRY)
  void run(opened)
  return { body: output.body, end: (reason) => finish(end(reason)) }
}

const nameOf = ({ grant, userId }: GatewayCaller): string => JSON.stringify([actorOf(grant), userId])
