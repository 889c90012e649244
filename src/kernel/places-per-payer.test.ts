import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPlacesPerPayer } from './places-per-payer.ts'

const full = new Error('full')
const places = (patience = 20) => createPlacesPerPayer(4, { max: 4, patience, refusal: () => full })

test('one payer has half of the places; others have the rest, in order', async () => {
  const { enter } = places()
  const leave = [await enter('a'), await enter('a'), await enter('b'), await enter('c')]
  for (const payer of ['a', 'b', 'd']) await assert.rejects(enter(payer), full, payer)
  leave[2]?.()
  ;(await enter('d'))()
  for (const leaveOne of leave) leaveOne()
  for (const payer of ['a', 'a', 'b', 'b']) await enter(payer)
})

test('those of one payer who wait beyond its half are refused at once', async () => {
  const { enter } = places(60_000)
  const [first, second] = [await enter('a'), await enter('a')]
  const waiting = [enter('a'), enter('a')]
  await assert.rejects(enter('a'), full)
  const others = [await enter('b'), await enter('b')]
  first()
  second()
  for (const leave of [...(await Promise.all(waiting)), ...others]) leave()
  await enter('a')
})

test('of two payers the first has a quarter of the places, and the second half', async () => {
  const { enter } = createPlacesPerPayer(8, { max: 8, patience: 20, refusal: () => full })
  const slow = [await enter('a', 'slow'), await enter('a', 'slow')]
  await assert.rejects(enter('a', 'fast'), full)
  slow.push(await enter('b', 'slow'), await enter('b', 'slow'))
  await assert.rejects(enter('c', 'slow'), full)
  for (const payer of ['c', 'c', 'd', 'd']) await enter(payer, 'fast')
  for (const leave of [...slow, ...slow]) leave()
  for (const payer of ['a', 'a', 'b', 'b']) await enter(payer, 'slow')
  await assert.rejects(enter('e', 'other'), full)
})
