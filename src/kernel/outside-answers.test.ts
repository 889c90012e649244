import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { testKernel } from '#test/harness.ts'
import { atomically, atTheEnd, type Kernel } from './kernel.ts'
import { answeredOutside, inEveryRun, outsideAnswer } from './outside-answers.ts'

const kernel = await testKernel({ config: { database: { max_connections: 1 } } })
await sql`create table service.noted (word text)`.execute(kernel.db)
const note = ({ db }: Kernel, word: string) => sql`insert into service.noted values (${word})`.execute(db)
const noted = async () =>
  (await sql<{ word: string }>`delete from service.noted returning word`.execute(kernel.db)).rows.map(
    ({ word }) => word,
  )

test('the work is undone, the answer is asked for with no connection held, and the work runs again', async () => {
  const seen: unknown[] = []
  const answer = await atomically(kernel, async (kernel) => {
    await note(
      kernel,
      inEveryRun(kernel, 'word', () => `word ${seen.length}`),
    )
    seen.push(answeredOutside(kernel, 'question'))
    return outsideAnswer(kernel, 'question', async (outer) => {
      // The only connection.
      assert.deepEqual([outer.db.isTransaction, await noted()], [false, []])
      return 42
    })
  })
  assert.deepEqual([answer, seen, await noted()], [42, [undefined, 42], ['word 0']])
})

test('what is left to the end runs once, in the transaction and after the work, and not in a run that is undone', async () => {
  const order: string[] = []
  const work = (question: () => Promise<void>) =>
    atomically(kernel, async (kernel) => {
      await atTheEnd(kernel, async () => {
        order.push('end')
        await note(kernel, 'end')
      })
      outsideAnswer(kernel, 'question', question)
      order.push('work')
    })
  await work(async () => {})
  assert.deepEqual([order, await noted()], [['work', 'end'], ['end']])
  await assert.rejects(
    work(() => Promise.reject(new RangeError('no'))),
    RangeError,
  )
  assert.deepEqual([order, await noted()], [['work', 'end'], []])
})

test('a failure to answer is thrown in the work, which may go on without the answer', async () => {
  let asked = 0
  const work = (goesOn: boolean) =>
    atomically(kernel, async (kernel) => {
      await note(kernel, 'done')
      try {
        outsideAnswer(kernel, 'question', async () => {
          asked++
          throw new RangeError('no')
        })
      } catch (error) {
        if (!goesOn || !(error instanceof RangeError)) throw error
      }
    })
  await assert.rejects(work(false), RangeError)
  assert.deepEqual([asked, await noted()], [1, []])
  await work(true)
  assert.deepEqual([asked, await noted()], [2, ['done']])
})

test('work with ever new questions ends with 503, and a question outside of a transaction is a mistake', async () => {
  let asked = 0
  const work = atomically(kernel, async (kernel) =>
    outsideAnswer(kernel, `question ${asked}`, async () => void asked++),
  )
  await assert.rejects(work, { code: 'service_unavailable' })
  assert.equal(asked, 8)
  assert.throws(() => outsideAnswer(kernel, 'question', async () => 1), /in a transaction/)
})
